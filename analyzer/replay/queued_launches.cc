// Launches that stand in queues: whether the host starts one itself, or hands it to the actor of its queue.
#include <algorithm>

#include "replay/program_compiler.h"

namespace lockstep {

/// Only where a program does it says the order of issue more than the streams do.
bool ProgramCompiler::uses_communicators_on_several_streams() const {
  if (!nccl_ || job_.implicit_launch_order() || options_.model == BlockingModel::kBlocking) return false;
  std::unordered_map<CommIndex, StringIndex> streams;
  CommIndex last = kNoComm;
  StringIndex last_stream{};
  for (const Operation& operation : operations_) {
    if (operation.comm == kNoComm || (operation.comm == last && operation.stream == last_stream)) continue;
    if (!is_placed_message(operation) && op_class(operation.kind) != OpClass::kCollective) continue;
    if (!rules_.is_nccl(operation.comm)) continue;
    last = operation.comm;
    last_stream = operation.stream;
    if (streams.try_emplace(last, last_stream).first->second != last_stream) return true;
  }
  return false;
}

bool ProgramCompiler::host_waits_for(const Operation& operation, bool is_batch) const {
  return !nccl_ && !is_batch && !is_immediate(operation.kind) && !operation.nonblocking();
}

std::uint64_t ProgramCompiler::queue_key(const Operation& operation, bool is_batch) const {
  constexpr std::uint64_t kNamed = std::uint64_t{1} << 63;
  // NCCL_LAUNCH_ORDER_IMPLICIT makes one queue of all streams of a device.
  if (nccl_ && job_.implicit_launch_order()) return kNamed;
  if (operation.stream != StringIndex{}) return kNamed | to_size(operation.stream);
  if (nccl_) return kNamed;
  if (operation.comm == kNoComm) return kNamed;  // a stream wait without a stream
  const std::uint64_t comm = static_cast<std::uint64_t>(to_size(operation.comm)) << 32;
  const bool by_pair = is_point_to_point(operation.kind) && !is_batch && options_.model != BlockingModel::kEager;
  return by_pair ? comm | (static_cast<std::uint32_t>(operation.peer) + 1U) : comm;
}

LaunchQueue& ProgramCompiler::queue_at(std::uint64_t key) {
  FoundQueue& found = found_queues_[(key ^ key >> 32) % found_queues_.size()];
  if (found.queue == nullptr || found.key != key) found = {key, &queues_[key]};
  return *found.queue;
}

void ProgramCompiler::compile_queued(OperationParts parts, bool is_batch) {
  const Operation& first = operations_[parts.front().operation];
  const bool host_waits = host_waits_for(first, is_batch);
  const std::uint64_t key = queue_key(first, is_batch);
  LaunchQueue& queue = queue_at(key);
  other_queues_.clear();
  for (const OperationPart& p : parts.subspan(1)) {
    const std::uint64_t other_key = queue_key(operations_[p.operation], is_batch);
    if (other_key == key) continue;
    LaunchQueue& other = queue_at(other_key);
    if (std::ranges::find(other_queues_, &other) == other_queues_.end()) other_queues_.push_back(&other);
  }
  find_launches_before(parts, queue);
  // Behind what the host itself has started, a call that it waits for can only start when that has completed.
  if (host_waits && other_queues_.empty() && queue.on_actor == 0) {
    while (!queue.started_by_host.empty()) host_waits_for_launch(queue.started_by_host.front());
  }
  const bool starts_at_once = other_queues_.empty() && queue.is_idle() && before_.empty();
  const std::optional<LaunchIndex> launch = host_can_block_ && starts_at_once
                                                ? start_by_host(parts, host_waits ? nullptr : &queue)
                                                : start_on_queue(parts, queue, host_waits);
  if (!keeps_issue_order_ || !launch) return;
  for (const OperationPart& p : parts) last_launches_[operations_[p.operation].comm] = {*launch, &queue};
}

/// NCCL runs the launches of one communicator in the order of issue, whatever their streams: those that stand on other
/// queues and come before this one.
void ProgramCompiler::find_launches_before(OperationParts parts, const LaunchQueue& queue) {
  before_.clear();
  if (!keeps_issue_order_) return;
  for (const OperationPart& p : parts) {
    const auto at = last_launches_.find(operations_[p.operation].comm);
    if (at == last_launches_.end() || at->second.queue == &queue || launches_.is_waited(at->second.launch)) continue;
    if (std::ranges::find(before_, at->second.launch) == before_.end()) before_.push_back(at->second.launch);
  }
}

/// Nothing stands before the launch, so it starts where the host issues it. `queue` null: the host waits for it, too.
std::optional<LaunchIndex> ProgramCompiler::start_by_host(OperationParts parts, LaunchQueue* queue) {
  if (queue == nullptr) {
    writer_.meet(host_, parts);
    return std::nullopt;
  }
  completions_.clear();
  for (const OperationPart& p : parts) {
    writer_.arrive_at(host_, p);
    if (p.part.waits()) completions_.push_back({p.part.gate(), p.operation});
  }
  if (completions_.empty()) return std::nullopt;
  const LaunchIndex launch = launches_.add(completions_, queue, false);
  index_launch(launch, parts);
  return launch;
}

std::optional<LaunchIndex> ProgramCompiler::start_on_queue(OperationParts parts, LaunchQueue& queue, bool host_waits) {
  const std::uint32_t actor = actor_of(queue);
  const std::uint32_t mine = parts.front().operation;
  if (host_can_block_) {
    const std::uint32_t issued = writer_.add_gate();
    writer_.arrive(host_, issued, mine);
    writer_.wait(actor, issued, mine);
  }
  for (const LaunchIndex before : before_) wait_for(actor, launches_.completions(before));
  // A launch over several queues is one synchronisation point of them all.
  for (LaunchQueue* other : other_queues_) {
    const std::uint32_t reached = writer_.add_gate();
    writer_.arrive(actor_of(*other), reached, mine);
    writer_.wait(actor, reached, mine);
  }
  writer_.meet(actor, parts);
  if (!host_can_block_ && other_queues_.empty() && !keeps_issue_order_) return std::nullopt;
  const std::uint32_t done = writer_.add_gate();
  writer_.arrive(actor, done, mine);
  for (LaunchQueue* other : other_queues_) writer_.wait(actor_of(*other), done, mine);
  if (host_waits) {
    writer_.wait(host_, done, mine);
    return std::nullopt;
  }
  const Completion completion{done, mine};
  const LaunchIndex launch = launches_.add({&completion, 1}, &queue, true);
  index_launch(launch, parts);
  // What comes to the other queues stands behind this launch as well.
  for (LaunchQueue* other : other_queues_) static_cast<void>(launches_.add({}, other, true));
  return launch;
}

void ProgramCompiler::index_launch(LaunchIndex launch, OperationParts parts) {
  for (const OperationPart& p : parts) {
    const Operation& operation = operations_[p.operation];
    launches_.index(launch, operation);
    if (follow_streams_) heads_.issued(operation.stream, queue_key(operation, parts.size() > 1), launch);
  }
}

/// The actor of a queue, made with what the host has started before standing at its head.
std::uint32_t ProgramCompiler::actor_of(LaunchQueue& queue) {
  if (queue.actor == LaunchQueue::kNoActor) queue.actor = writer_.add_actor(program_);
  if (host_has_met_ != queue.host_has_met) {
    queue.host_has_met = host_has_met_;
    writer_.wait(queue.actor, static_cast<std::uint32_t>(host_has_met_), writer_.items(host_).back().operation);
  }
  for (const LaunchIndex launch : queue.started_by_host) {
    wait_for(queue.actor, launches_.completions(launch));
    launches_.hand_to_actor(launch);
  }
  queue.started_by_host.clear();
  return queue.actor;
}

}  // namespace lockstep
