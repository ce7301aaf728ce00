// Waits of the host: for handles, peers and all, for streams, events and the device, and for a message to probe.
#include <utility>

#include "replay/program_compiler.h"

namespace lockstep {

/// `i` = index of the wait in its program.
void ProgramCompiler::compile_wait(const Operation& wait, std::uint32_t i) {
  const bool known_complete = options_.trust_completion && wait.state == OpState::kCompleted;
  if (wait.kind == OpKind::kProbe && next_probe_ < match_.probes.size() &&
      match_.probes[next_probe_].program == program_ && match_.probes[next_probe_].operation == i) {
    const auto gate = static_cast<std::uint32_t>(match_.gate_count + next_probe_++);
    if (!known_complete) writer_.wait(host_, gate, i);
    return;
  }
  // Any and some are left by one of several, and tests do not hold: none of them decides a deadlock here.
  if (wait.kind != OpKind::kWait) return;
  completions_.clear();
  launches_.take(wait, completions_);
  if (!known_complete) wait_for(host_, completions_);
}

/// Streams are queues, so the last launch of one stands for all before it.
void ProgramCompiler::compile_host_wait(const Operation& wait, std::uint32_t i) {
  std::vector<LaunchIndex> launches;
  // Where streams have no names, a stream that is not named is every one of them.
  const bool every_stream = wait.kind == OpKind::kDeviceSync || (wait.stream == StringIndex{} && !nccl_);
  switch (wait.kind) {
    case OpKind::kEventRecord:
      every_stream ? heads_.last_of_all(launches) : heads_.last_of(wait.stream, launches);
      heads_.record_event(wait.handle, std::move(launches));
      return;
    case OpKind::kStreamWait:
      compile_stream_wait(wait, i);
      return;
    case OpKind::kEventSync: {
      const auto recorded = heads_.event(wait.handle);
      launches.assign(recorded.begin(), recorded.end());
      break;
    }
    default:
      every_stream ? heads_.last_of_all(launches) : heads_.last_of(wait.stream, launches);
      break;
  }
  if (options_.trust_completion && wait.state == OpState::kCompleted) return;
  const auto first = static_cast<std::uint32_t>(writer_.items(host_).size());
  for (const LaunchIndex launch : launches) host_waits_for_launch(launch);
  const auto end = static_cast<std::uint32_t>(writer_.items(host_).size());
  if (first != end) writer_.script().host_waits.push_back({host_, first, end, i});
}

/// What comes to the stream from here on stands behind what the event stands for.
void ProgramCompiler::compile_stream_wait(const Operation& wait, std::uint32_t i) {
  const auto recorded = heads_.event(wait.handle);
  if (recorded.empty() || options_.model == BlockingModel::kBlocking) return;
  const std::uint64_t key = queue_key(wait, false);
  LaunchQueue& queue = queue_at(key);
  const std::uint32_t actor = actor_of(queue);
  for (const LaunchIndex launch : recorded) wait_for(actor, launches_.completions(launch));
  const std::uint32_t done = writer_.add_gate();
  writer_.arrive(actor, done, i);
  const Completion completion{done, i};
  heads_.issued(wait.stream, key, launches_.add({&completion, 1}, &queue, true));
}

void ProgramCompiler::host_waits_for_launch(LaunchIndex launch) {
  completions_.clear();
  launches_.take(launch, completions_);
  wait_for(host_, completions_);
}

}  // namespace lockstep
