// The host's own steps: single calls, batches, meetings, and what is posted. See the header.
#include "replay/program_compiler.h"

#include <algorithm>
#include <functional>

namespace lockstep {

void ProgramCompiler::compile(ProgramIndex index, std::span<const Part> parts) {
  const ProgramTraits& traits = match_.traits[to_size(index)];
  program_ = index;
  operations_ = job_.program(index).placed_operations();
  parts_ = parts;
  host_ = writer_.add_actor(index);
  writer_.items(host_).reserve(operations_.size());
  queues_.clear();
  found_queues_ = {};
  launches_.clear(traits);
  last_launches_.clear();
  host_has_met_ = kNoGate;
  follow_streams_ = traits.host_waits;
  heads_.clear();
  // Where the host never stops, its queues need not be told what it has issued, nor it what they have done.
  host_can_block_ = options_.model == BlockingModel::kBlocking || traits.waits || rules_.mixed() ||
                    (nccl_ ? traits.meets_between : traits.synchronous);
  keeps_issue_order_ = uses_communicators_on_several_streams();
  for (std::uint32_t i = 0; i < operations_.size();) {
    const Operation& operation = operations_[i];
    if (is_host_wait(operation.kind)) {
      compile_host_wait(operation, i);
      ++i;
    } else if (op_class(operation.kind) == OpClass::kCompletion) {
      compile_wait(operation, i);
      ++i;
    } else if (operation.launch != 0) {
      i = compile_batch(i);
    } else {
      const OperationPart single{i, parts_[i]};
      if (single.part.meets()) compile_launch({&single, 1}, false);
      ++i;
    }
  }
  // What nobody waited for still has to complete before the rank is at its end.
  for (auto& [key, queue] : queues_) {
    if (!queue.started_by_host.empty()) static_cast<void>(actor_of(queue));
  }
}

/// All operations of one launch number from i on; returns the index after them.
std::uint32_t ProgramCompiler::compile_batch(std::uint32_t i) {
  const std::uint32_t launch = operations_[i].launch;
  batch_.clear();
  for (; i < operations_.size(); ++i) {
    if (op_class(operations_[i].kind) == OpClass::kMarker) continue;
    if (operations_[i].launch != launch) break;
    const Part part = parts_[i];
    if (!part.meets()) continue;
    // One arrival a launch and component: the messages of a coupled batch share its gate.
    const bool again =
        couples_ && std::ranges::any_of(batch_, [&](const OperationPart& p) { return p.part.gate() == part.gate(); });
    if (!again) batch_.push_back({i, part});
  }
  if (nccl_ && options_.groups_as_written) {
    compile_by_communicator(batch_);
  } else if (!batch_.empty()) {
    compile_launch(batch_, true);
  }
  return i;
}

/// One launch for each communicator, in the order in which the group names them first.
void ProgramCompiler::compile_by_communicator(std::vector<OperationPart> parts) {
  while (!parts.empty()) {
    const CommIndex comm = operations_[parts.front().operation].comm;
    const auto others = std::ranges::stable_partition(
        parts, [&](const OperationPart& p) { return operations_[p.operation].comm == comm; });
    compile_launch({parts.begin(), others.begin()}, true);
    parts.erase(parts.begin(), others.begin());
  }
}

void ProgramCompiler::compile_launch(OperationParts parts, bool is_batch) {
  const auto meets = [&](const OperationPart& p) { return rules_.is_meeting(operations_[p.operation]); };
  if (nccl_ && std::ranges::any_of(parts, meets)) {
    // At the end of a group hosts meet first; then its calls are launched.
    std::vector<OperationPart> meetings(parts.begin(), parts.end());
    std::vector<OperationPart> launched(parts.begin(), parts.end());
    std::erase_if(meetings, std::not_fn(meets));
    std::erase_if(launched, meets);
    compile_meetings(meetings);
    if (!launched.empty()) compile_launch(launched, is_batch);
  } else if (rules_.is_posted(operations_[parts.front().operation].comm)) {
    compile_posted(parts);
  } else if (options_.model == BlockingModel::kBlocking) {
    writer_.meet(host_, parts);
  } else {
    compile_queued(parts, is_batch);
  }
}

/// All are come to at once. One that the host does not wait for (blocking = 0) still has to come about.
void ProgramCompiler::compile_meetings(OperationParts meetings) {
  waited_.clear();
  for (const OperationPart& p : meetings) {
    if (!operations_[p.operation].nonblocking() || options_.model == BlockingModel::kBlocking) {
      waited_.push_back(p);
      continue;
    }
    writer_.arrive_at(host_, p);
    const Completion completion{p.part.gate(), p.operation};
    LaunchQueue& queue = queue_at(kMeetingQueue | to_size(operations_[p.operation].comm));
    if (p.part.waits()) static_cast<void>(launches_.add({&completion, 1}, &queue, false));
  }
  if (waited_.empty()) return;
  writer_.meet(host_, waited_);
  if (host_can_block_) return;
  // Queues that are not told what the host issues are told that it has come past its meetings.
  const std::uint32_t met = writer_.add_gate();
  host_has_met_ = GateIndex{met};
  writer_.arrive(host_, met, waited_.back().operation);
}

/// MPI and gloo have no queues: an operation is posted where it is called, and waited for there or by a later wait. A
/// batch is MPI_Sendrecv and its like: all parts are posted before one is waited for.
void ProgramCompiler::compile_posted(OperationParts parts) {
  waited_.clear();
  for (const OperationPart& p : parts) {
    const Operation& operation = operations_[p.operation];
    if (!is_immediate(operation.kind) && !operation.nonblocking()) {
      waited_.push_back(p);
      continue;
    }
    writer_.arrive_at(host_, p);
    if (!p.part.waits()) continue;
    const Completion completion{p.part.gate(), p.operation};
    launches_.index(launches_.add({&completion, 1}, nullptr, false), operation);
  }
  if (!waited_.empty()) writer_.meet(host_, waited_);
}

}  // namespace lockstep
