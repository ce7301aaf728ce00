// Compiles a Job to a Script under the rules in replay.h.
#include "replay/script.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "replay/coupling.h"
#include "replay/host_waits.h"
#include "replay/launches.h"

namespace lockstep {
namespace {

/// What one operation does at its rendezvous.
struct Part {
  std::uint32_t gate = 0;
  std::uint32_t operation = 0;
  bool arrives = true;
  bool waits = true;
};

class Compiler {
 public:
  Compiler(const Job& job, const MatchResult& match, const ReplayOptions& options)
      : job_(job), match_(match), options_(options), mpi_(job.library() == Library::kMpi) {
    if (options.model == BlockingModel::kCoupled && !mpi_) coupling_ = couple_batches(job, match, options.trust_completion);
  }

  Script run() {
    set_rendezvous_gates();
    find_held_gates();
    script_.actors.reserve(job_.programs().size());
    for (std::uint32_t p = 0; p < job_.programs().size(); ++p) compile_program(ProgramIndex{p});
    return std::move(script_);
  }

 private:
  void set_rendezvous_gates() {
    script_.missing.assign(match_.gate_count, 2);  // messages: both sides
    for (const CommunicatorMatch& communicator : match_.communicators) {
      const auto first = script_.missing.begin() + static_cast<std::ptrdiff_t>(to_size(communicator.first_gate));
      std::fill_n(first, communicator.matched_positions(), communicator.participants);
      // Nobody arrives for the extra one: this position cannot complete.
      for (const std::uint32_t seq : communicator.blocking) ++first[seq - communicator.first_position];
    }
    for (std::size_t i = 0; i < match_.probes.size(); ++i) {
      const auto gate = static_cast<std::uint32_t>(match_.gate_count + i);
      if (match_.probes[i].gate != kNoGate) probes_of_[static_cast<std::uint32_t>(match_.probes[i].gate)].push_back(gate);
      script_.missing.push_back(1);
    }
    if (coupling_) {
      first_component_gate_ = static_cast<std::uint32_t>(script_.missing.size());
      script_.missing.insert(script_.missing.end(), coupling_->launches.begin(), coupling_->launches.end());
    }
    script_.rendezvous_count = static_cast<std::uint32_t>(script_.missing.size());
  }

  /// Collectives that a rank is known to have stood in to the end: leaving early did not happen there.
  void find_held_gates() {
    for (const Program& program : job_.programs()) {
      for (auto at = program.operations.rbegin(); at != program.operations.rend() && (at->flags & kOpHeld) != 0; ++at) {
        if (!is_placed_collective(*at)) continue;
        const GateIndex gate = match_.communicators[to_size(at->comm)].gate_of(at->seq);
        if (gate != kNoGate) held_gates_.push_back(static_cast<std::uint32_t>(gate));
      }
    }
    std::ranges::sort(held_gates_);
  }

  void compile_program(ProgramIndex index) {
    const Program& program = job_.program(index);
    program_ = index;
    host_ = add_actor();
    if (is_plain(match_.traits[to_size(index)])) {
      script_.actors[host_].is_plain = true;
      return;
    }
    script_.actors[host_].items.reserve(program.placed);
    queues_.clear();
    launches_.clear(match_.traits[to_size(index)]);
    message_ordinal_ = 0;
    follow_streams_ = match_.traits[to_size(index)].host_waits;
    heads_.clear();
    known_complete_.clear();
    if (follow_streams_ && options_.trust_completion) known_complete_ = completed_by_host_waits(program.placed_operations());
    const ProgramTraits& traits = match_.traits[to_size(index)];
    // Where the host never stops, its queues need not be told what it has issued, nor it what they have done.
    host_can_block_ = options_.model == BlockingModel::kBlocking || traits.waits ||
                      (job_.library() != Library::kNccl && traits.synchronous);
    const auto operations = program.placed_operations();
    for (std::uint32_t i = 0; i < operations.size();) {
      if (is_host_wait(operations[i].kind)) {
        compile_host_wait(operations[i], i);
        ++i;
      } else if (op_class(operations[i].kind) == OpClass::kCompletion) {
        compile_wait(operations[i], i);
        ++i;
      } else if (operations[i].launch != 0) {
        i = compile_batch(operations, i);
      } else {
        if (const std::optional<Part> part = part_of(operations[i], i)) compile_launch(operations, {&*part, 1}, false);
        ++i;
      }
    }
    // What nobody waited for still has to complete before the rank is at its end.
    for (auto& [key, queue] : queues_) {
      if (!queue.started_by_host.empty()) static_cast<void>(actor_of(queue));
    }
  }

  bool is_plain(const ProgramTraits& traits) const {
    if (coupling_ || traits.waits || traits.batches || traits.captured || traits.outsider || match_.begins_late ||
        !match_.probes.empty()) {
      return false;
    }
    if (mpi_) return !traits.nonblocking && !(traits.rooted && options_.model == BlockingModel::kEager);
    return !traits.nonblocking || options_.model == BlockingModel::kBlocking;
  }

  /// What operation i does at its rendezvous; nothing for markers, wildcards and calls of ranks that are no member.
  std::optional<Part> part_of(const Operation& operation, std::uint32_t i) {
    if (!takes_effect(operation)) return std::nullopt;
    const bool known_complete = options_.trust_completion && (operation.state == OpState::kCompleted ||
                                                              (!known_complete_.empty() && known_complete_[i]));
    if (is_point_to_point(operation.kind)) {
      const std::size_t ordinal = message_ordinal_++;
      const GateIndex gate = match_.message_gates[to_size(program_)][ordinal];
      if (gate == kNoGate) return std::nullopt;
      Part part{.gate = static_cast<std::uint32_t>(gate), .operation = i, .waits = !known_complete};
      if (coupling_) part.gate = first_component_gate_ + coupling_->component[to_size(program_)][ordinal];
      const bool held = (operation.flags & kOpHeld) != 0;
      if (!held && is_buffered_send(job_.library(), options_.model, operation.kind)) part.waits = false;
      return part;
    }
    if (!is_collective(operation.kind) || operation.comm == kNoComm) return std::nullopt;
    const CommunicatorMatch& communicator = match_.communicators[to_size(operation.comm)];
    if (!communicator.outsiders.empty() && std::ranges::find(communicator.outsiders, program_) != communicator.outsiders.end()) {
      return std::nullopt;
    }
    const GateIndex gate = communicator.gate_of(operation.seq);
    if (gate == kNoGate) return std::nullopt;
    Part part{.gate = static_cast<std::uint32_t>(gate),
              .operation = i,
              .waits = !known_complete && !(job_.library() == Library::kNccl && is_empty_collective(operation))};
    if (mpi_ && options_.model == BlockingModel::kEager) relax_rooted(operation, communicator, part);
    return part;
  }

  /// MPI 3.1, 5.1: a member may leave a rooted collective as soon as its own part is done.
  void relax_rooted(const Operation& operation, const CommunicatorMatch& communicator, Part& part) {
    if (!has_root(operation.kind) || std::ranges::binary_search(communicator.blocking, operation.seq)) {
      return;
    }
    if (std::ranges::binary_search(held_gates_, part.gate)) return;
    const bool is_root = operation.peer == job_.program(program_).rank;
    const bool root_sends = operation.kind == OpKind::kBroadcast || operation.kind == OpKind::kScatter ||
                            operation.kind == OpKind::kScatterV;
    if (root_sends) {
      script_.missing[part.gate] = std::min<std::uint32_t>(script_.missing[part.gate], 1);
      part.arrives = is_root;
      part.waits = part.waits && !is_root;
    } else {
      part.waits = part.waits && is_root;
    }
  }

  /// All operations of one launch number from i on; returns the index after them.
  std::uint32_t compile_batch(std::span<const Operation> operations, std::uint32_t i) {
    const std::uint32_t launch = operations[i].launch;
    std::vector<Part> parts;
    for (; i < operations.size(); ++i) {
      if (op_class(operations[i].kind) == OpClass::kMarker) continue;
      if (operations[i].launch != launch) break;
      const std::optional<Part> part = part_of(operations[i], i);
      if (!part) continue;
      // One arrival a launch and component: the parts of a coupled batch share its gate.
      const bool again = coupling_ && std::ranges::any_of(parts, [&](const Part& p) { return p.gate == part->gate; });
      if (!again) parts.push_back(*part);
    }
    if (!parts.empty()) compile_launch(operations, parts, true);
    return i;
  }

  void compile_launch(std::span<const Operation> operations, std::span<const Part> parts, bool is_batch) {
    const Operation& first = operations[parts.front().operation];
    if (mpi_) {
      compile_mpi(operations, parts);
    } else if (options_.model == BlockingModel::kBlocking) {
      meet(host_, parts);
    } else {
      compile_queued(operations, parts, is_batch, host_waits_for(first, is_batch));
    }
  }

  /// MPI has no queues: an operation is posted where it is called, and waited for there or by a later wait. A batch is
  /// MPI_Sendrecv and its like: all parts are posted before one is waited for.
  void compile_mpi(std::span<const Operation> operations, std::span<const Part> parts) {
    std::vector<Part> waited;
    for (const Part& part : parts) {
      const Operation& operation = operations[part.operation];
      if (!is_immediate(operation.kind) && !operation.nonblocking()) {
        waited.push_back(part);
        continue;
      }
      if (part.arrives) add(host_, part.gate, part.operation, true, false);
      if (!part.waits) continue;
      const Completion completion{part.gate, part.operation};
      launches_.index(launches_.add({&completion, 1}, nullptr, false), operation);
    }
    if (!waited.empty()) meet(host_, waited);
  }

  bool host_waits_for(const Operation& operation, bool is_batch) const {
    if (job_.library() == Library::kNccl) return false;
    return !is_batch && !is_immediate(operation.kind) && !operation.nonblocking();
  }

  void compile_queued(std::span<const Operation> operations, std::span<const Part> parts, bool is_batch,
                      bool host_waits) {
    LaunchQueue& queue = queues_[queue_key(operations[parts.front().operation], is_batch)];
    other_queues_.clear();
    for (const Part& part : parts.subspan(1)) {
      LaunchQueue& other = queues_[queue_key(operations[part.operation], is_batch)];
      if (&other != &queue && std::ranges::find(other_queues_, &other) == other_queues_.end()) other_queues_.push_back(&other);
    }
    // Behind what the host itself has started, a call that it waits for can only start when that has completed.
    if (host_waits && other_queues_.empty() && queue.on_actor == 0) {
      while (!queue.started_by_host.empty()) host_waits_for_launch(queue.started_by_host.front());
    }
    if (host_can_block_ && other_queues_.empty() && queue.is_idle()) {
      start_by_host(operations, parts, host_waits ? nullptr : &queue);
    } else {
      start_on_queue(operations, parts, queue, host_waits);
    }
  }

  /// Nothing stands before the launch, so it starts where the host issues it. `queue` null: the host waits for it, too.
  void start_by_host(std::span<const Operation> operations, std::span<const Part> parts, LaunchQueue* queue) {
    if (queue == nullptr) {
      meet(host_, parts);
      return;
    }
    completions_.clear();
    for (const Part& part : parts) {
      add(host_, part.gate, part.operation, part.arrives, false);
      if (part.waits) completions_.push_back({part.gate, part.operation});
    }
    if (completions_.empty()) return;
    index_launch(launches_.add(completions_, queue, false), operations, parts);
  }

  void start_on_queue(std::span<const Operation> operations, std::span<const Part> parts, LaunchQueue& queue,
                      bool host_waits) {
    const std::uint32_t actor = actor_of(queue);
    const std::uint32_t mine = parts.front().operation;
    if (host_can_block_) {
      const std::uint32_t issued = add_gate();
      add(host_, issued, mine, true, false);
      add(actor, issued, mine, false, true);
    }
    // A launch over several queues is one synchronisation point of them all.
    for (LaunchQueue* other : other_queues_) {
      const std::uint32_t reached = add_gate();
      add(actor_of(*other), reached, mine, true, false);
      add(actor, reached, mine, false, true);
    }
    meet(actor, parts);
    if (!host_can_block_ && other_queues_.empty()) return;
    const std::uint32_t done = add_gate();
    add(actor, done, mine, true, false);
    for (LaunchQueue* other : other_queues_) add(actor_of(*other), done, mine, false, true);
    if (host_waits) {
      add(host_, done, mine, false, true);
      return;
    }
    const Completion completion{done, mine};
    index_launch(launches_.add({&completion, 1}, &queue, true), operations, parts);
    // What comes to the other queues stands behind this launch as well.
    for (LaunchQueue* other : other_queues_) static_cast<void>(launches_.add({}, other, true));
  }

  void index_launch(LaunchIndex launch, std::span<const Operation> operations, std::span<const Part> parts) {
    for (const Part& part : parts) {
      const Operation& operation = operations[part.operation];
      launches_.index(launch, operation);
      if (follow_streams_) heads_.issued(operation.stream, queue_key(operation, parts.size() > 1), launch);
    }
  }

  /// Streams are queues, so the last launch of one stands for all before it.
  void compile_host_wait(const Operation& wait, std::uint32_t i) {
    std::vector<LaunchIndex> launches;
    // Where streams have no names, a stream that is not named is every one of them.
    const bool every_stream = wait.kind == OpKind::kDeviceSync ||
                              (wait.stream == StringIndex{} && job_.library() != Library::kNccl);
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
    const auto first = static_cast<std::uint32_t>(script_.actors[host_].items.size());
    for (const LaunchIndex launch : launches) host_waits_for_launch(launch);
    const auto end = static_cast<std::uint32_t>(script_.actors[host_].items.size());
    if (first != end) script_.host_waits.push_back({host_, first, end, i});
  }

  /// What comes to the stream from here on stands behind what the event stands for.
  void compile_stream_wait(const Operation& wait, std::uint32_t i) {
    const auto recorded = heads_.event(wait.handle);
    if (recorded.empty() || options_.model == BlockingModel::kBlocking) return;
    const std::uint64_t key = queue_key(wait, false);
    LaunchQueue& queue = queues_[key];
    const std::uint32_t actor = actor_of(queue);
    for (const LaunchIndex launch : recorded) {
      for (const Completion& completion : launches_.completions(launch)) {
        add(actor, completion.gate, completion.operation, false, true);
      }
    }
    const std::uint32_t done = add_gate();
    add(actor, done, i, true, false);
    const Completion completion{done, i};
    heads_.issued(wait.stream, key, launches_.add({&completion, 1}, &queue, true));
  }

  void host_waits_for_launch(LaunchIndex launch) {
    completions_.clear();
    launches_.take(launch, completions_);
    for (const Completion& completion : completions_) add(host_, completion.gate, completion.operation, false, true);
  }

  /// `i` = index of the wait in its program.
  void compile_wait(const Operation& wait, std::uint32_t i) {
    const bool known_complete = options_.trust_completion && wait.state == OpState::kCompleted;
    if (wait.kind == OpKind::kProbe && next_probe_ < match_.probes.size() &&
        match_.probes[next_probe_].program == program_ && match_.probes[next_probe_].operation == i) {
      const auto gate = static_cast<std::uint32_t>(match_.gate_count + next_probe_++);
      if (!known_complete) add(host_, gate, i, false, true);
      return;
    }
    // Any and some are left by one of several, and tests do not hold: none of them decides a deadlock here.
    if (wait.kind != OpKind::kWait) return;
    completions_.clear();
    launches_.take(wait, completions_);
    if (known_complete) return;
    for (const Completion& completion : completions_) add(host_, completion.gate, completion.operation, false, true);
  }

  std::uint64_t queue_key(const Operation& operation, bool is_batch) const {
    constexpr std::uint64_t kNamed = std::uint64_t{1} << 63;
    // NCCL_LAUNCH_ORDER_IMPLICIT makes one queue of all streams of a device.
    if (job_.library() == Library::kNccl && job_.implicit_launch_order()) return kNamed;
    if (operation.stream != StringIndex{}) return kNamed | to_size(operation.stream);
    if (job_.library() == Library::kNccl) return kNamed;
    if (operation.comm == kNoComm) return kNamed;  // a stream wait without a stream
    const std::uint64_t comm = static_cast<std::uint64_t>(to_size(operation.comm)) << 32;
    const bool by_pair = is_point_to_point(operation.kind) && !is_batch && options_.model != BlockingModel::kEager;
    return by_pair ? comm | (static_cast<std::uint32_t>(operation.peer) + 1U) : comm;
  }

  /// The actor of a queue, made with what the host has started before standing at its head.
  std::uint32_t actor_of(LaunchQueue& queue) {
    if (queue.actor == LaunchQueue::kNoActor) queue.actor = add_actor();
    for (const LaunchIndex launch : queue.started_by_host) {
      for (const Completion& completion : launches_.completions(launch)) {
        add(queue.actor, completion.gate, completion.operation, false, true);
      }
      launches_.hand_to_actor(launch);
    }
    queue.started_by_host.clear();
    return queue.actor;
  }

  std::uint32_t add_actor() {
    script_.actors.push_back({.program = program_});
    return static_cast<std::uint32_t>(script_.actors.size() - 1);
  }
  std::uint32_t add_gate() {
    script_.missing.push_back(1);
    assert(script_.missing.size() < ScriptItem::kWait);
    return static_cast<std::uint32_t>(script_.missing.size() - 1);
  }
  void add(std::uint32_t actor, std::uint32_t gate, std::uint32_t operation, bool arrives, bool waits) {
    if (!arrives && !waits) return;
    if (arrives && !probes_of_.empty()) {
      const auto probes = probes_of_.find(gate);
      const bool sends = gate < match_.gate_count && is_send(job_.program(program_).operations[operation].kind);
      if (probes != probes_of_.end() && sends) {
        for (const std::uint32_t probe : probes->second) {
          script_.actors[actor].items.push_back({probe | ScriptItem::kArrive, operation});
        }
      }
    }
    const std::uint32_t flags = (arrives ? ScriptItem::kArrive : 0) | (waits ? ScriptItem::kWait : 0);
    script_.actors[actor].items.push_back({gate | flags, operation});
  }
  /// All parts start together; the actor goes on when all have completed.
  void meet(std::uint32_t actor, std::span<const Part> parts) {
    if (parts.size() == 1) {
      add(actor, parts[0].gate, parts[0].operation, parts[0].arrives, parts[0].waits);
      return;
    }
    for (const Part& part : parts) add(actor, part.gate, part.operation, part.arrives, false);
    for (const Part& part : parts) add(actor, part.gate, part.operation, false, part.waits);
  }

  const Job& job_;
  const MatchResult& match_;
  const ReplayOptions& options_;
  const bool mpi_;
  std::optional<Coupling> coupling_;
  std::uint32_t first_component_gate_ = 0;
  std::vector<std::uint32_t> held_gates_;  // sorted
  Script script_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> probes_of_;  // message gate to gates of its probes
  std::size_t next_probe_ = 0;                                               // programs are compiled in order

  ProgramIndex program_ = kNoProgram;  // the one being compiled, and what belongs to it
  std::uint32_t host_ = 0;
  bool host_can_block_ = true;
  std::size_t message_ordinal_ = 0;
  std::unordered_map<std::uint64_t, LaunchQueue> queues_;  // references to its elements stay valid
  Launches launches_;
  bool follow_streams_ = false;
  StreamHeads heads_;
  std::vector<bool> known_complete_;        // by operation; empty where no wait of the host says more than the calls do
  std::vector<LaunchQueue*> other_queues_;  // scratch
  std::vector<Completion> completions_;     // scratch
};

}  // namespace

bool is_buffered_send(Library library, BlockingModel model, OpKind kind) {
  if (library == Library::kNccl) return kind == OpKind::kSend && model == BlockingModel::kEager;
  if (library != Library::kMpi) return false;
  switch (kind) {
    case OpKind::kSend:
    case OpKind::kIsend:
      return model == BlockingModel::kEager;
    case OpKind::kBsend:
    case OpKind::kIbsend:
    case OpKind::kRsend:
    case OpKind::kIrsend:
      return true;
    default:
      return false;
  }
}

PlainItems::PlainItems(const Job& job, const MatchResult& match, const ReplayOptions& options)
    : job_(job), match_(match), trust_completion_(options.trust_completion),
      nccl_(job.library() == Library::kNccl), buffered_(256) {
  first_gates_.reserve(match.communicators.size());
  for (const CommunicatorMatch& communicator : match.communicators) {
    first_gates_.push_back(static_cast<std::uint32_t>(communicator.first_gate));
  }
  for (std::size_t kind = 0; kind < buffered_.size(); ++kind) {
    buffered_[kind] = is_buffered_send(job.library(), options.model, static_cast<OpKind>(kind));
  }
}

Script compile_script(const Job& job, const MatchResult& match, const ReplayOptions& options) {
  return Compiler(job, match, options).run();
}

}  // namespace lockstep
