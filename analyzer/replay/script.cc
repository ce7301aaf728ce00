// Compiles a Job to a Script under the rules in replay.h.
#include "replay/script.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "match/nccl_meetings.h"
#include "model/gloo.h"
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
      : job_(job), match_(match), options_(options), mpi_(job.library() == Library::kMpi),
        nccl_(job.library() == Library::kNccl), mixed_(job.mixes_libraries()) {
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
    if (!mpi_ && !mixed_) return;
    for (const Program& program : job_.programs()) {
      for (auto at = program.operations.rbegin(); at != program.operations.rend() && (at->flags & kOpHeld) != 0; ++at) {
        if (!is_placed_collective(*at) || !is_mpi(at->comm)) continue;
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
    apart_.clear();
    last_launches_.clear();
    host_has_met_ = kNoGate;
    message_ordinal_ = 0;
    follow_streams_ = match_.traits[to_size(index)].host_waits;
    heads_.clear();
    known_complete_.clear();
    if (follow_streams_ && options_.trust_completion) known_complete_ = completed_by_host_waits(program.placed_operations());
    const ProgramTraits& traits = match_.traits[to_size(index)];
    // Where the host never stops, its queues need not be told what it has issued, nor it what they have done.
    host_can_block_ = options_.model == BlockingModel::kBlocking || traits.waits || mixed_ ||
                      (nccl_ ? traits.meets_between : traits.synchronous);
    const auto operations = program.placed_operations();
    keeps_issue_order_ = uses_communicators_on_several_streams(operations);
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

  bool is_nccl(CommIndex comm) const { return mixed_ ? job_.library_of(comm) == Library::kNccl : nccl_; }
  /// Starts where it is called, without queues: MPI, and torch on gloo.
  bool is_posted(CommIndex comm) const { return is_mpi(comm) || is_gloo(comm); }
  bool is_gloo(CommIndex comm) const { return (mixed_ ? job_.library_of(comm) : job_.library()) == kGlooLibrary; }
  bool is_mpi(CommIndex comm) const { return mixed_ ? job_.library_of(comm) == Library::kMpi : mpi_; }

  /// What of MPI's rules holds: in a job of NCCL the lenient ones, since the models there are about NCCL.
  BlockingModel mpi_model() const {
    return mixed_ && options_.model != BlockingModel::kBlocking ? BlockingModel::kEager : options_.model;
  }

  /// Only where one does it says the order of issue more than the streams do.
  bool uses_communicators_on_several_streams(std::span<const Operation> operations) const {
    if (!nccl_ || job_.implicit_launch_order() || options_.model == BlockingModel::kBlocking) return false;
    std::unordered_map<CommIndex, StringIndex> streams;
    CommIndex last = kNoComm;
    StringIndex last_stream{};
    for (const Operation& operation : operations) {
      if (operation.comm == kNoComm || (operation.comm == last && operation.stream == last_stream)) continue;
      if (!is_placed_message(operation) && op_class(operation.kind) != OpClass::kCollective) continue;
      if (!is_nccl(operation.comm)) continue;
      last = operation.comm;
      last_stream = operation.stream;
      if (streams.try_emplace(last, last_stream).first->second != last_stream) return true;
    }
    return false;
  }

  /// Makes or ends a communicator of NCCL: a meeting of the hosts.
  bool is_meeting(const Operation& operation) const {
    return is_collective(operation.kind) && op_class(operation.kind) != OpClass::kCollective && is_nccl(operation.comm);
  }

  bool is_plain(const ProgramTraits& traits) const {
    if (coupling_ || traits.waits || traits.batches || traits.captured || traits.outsider || match_.begins_late ||
        !match_.probes.empty() || match_.pairs_apart || mixed_ || (nccl_ && traits.meets_after)) {
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
      const Library library = mixed_ ? job_.library_of(operation.comm) : job_.library();
      const BlockingModel model = library == Library::kMpi ? mpi_model() : options_.model;
      if (!held && is_buffered_send(library, model, operation.kind)) part.waits = false;
      return part;
    }
    if (!is_collective(operation.kind) || operation.comm == kNoComm) return std::nullopt;
    if (!options_.empty_calls_meet && is_empty_collective(operation) && is_nccl(operation.comm)) return std::nullopt;
    const CommunicatorMatch& communicator = match_.communicators[to_size(operation.comm)];
    if (!communicator.outsiders.empty() && std::ranges::find(communicator.outsiders, program_) != communicator.outsiders.end()) {
      return std::nullopt;
    }
    const GateIndex gate = communicator.apart ? next_gate_apart(communicator, operation) : communicator.gate_of(operation.seq);
    if (gate == kNoGate) return std::nullopt;
    Part part{.gate = static_cast<std::uint32_t>(gate),
              .operation = i,
              .waits = !known_complete};
    if (is_mpi(operation.comm) && mpi_model() == BlockingModel::kEager) relax_rooted(operation, communicator, part);
    return part;
  }

  GateIndex next_gate_apart(const CommunicatorMatch& communicator, const Operation& operation) {
    const NcclOrder order = nccl_order(operation);
    CommunicatorMatch::Apart& made = apart_[operation.comm];
    const std::uint32_t place =
        order == NcclOrder::kLaunches ? made.launches++ : communicator.apart->launches + made.meetings++;
    return GateIndex{static_cast<std::uint32_t>(to_size(communicator.first_gate)) + place};
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
    if (nccl_ && options_.groups_as_written) {
      compile_by_communicator(operations, std::move(parts));
    } else if (!parts.empty()) {
      compile_launch(operations, parts, true);
    }
    return i;
  }

  /// One launch for each communicator, in the order in which the group names them first.
  void compile_by_communicator(std::span<const Operation> operations, std::vector<Part> parts) {
    while (!parts.empty()) {
      const CommIndex comm = operations[parts.front().operation].comm;
      const auto others = std::ranges::stable_partition(parts, [&](const Part& part) { return operations[part.operation].comm == comm; });
      compile_launch(operations, {parts.begin(), others.begin()}, true);
      parts.erase(parts.begin(), others.begin());
    }
  }

  void compile_launch(std::span<const Operation> operations, std::span<const Part> parts, bool is_batch) {
    const Operation& first = operations[parts.front().operation];
    const auto meets = [&](const Part& part) { return is_meeting(operations[part.operation]); };
    if (nccl_ && std::ranges::any_of(parts, meets)) {
      // At the end of a group hosts meet first; then its calls are launched.
      std::vector<Part> meetings(parts.begin(), parts.end());
      std::vector<Part> launched(parts.begin(), parts.end());
      std::erase_if(meetings, std::not_fn(meets));
      std::erase_if(launched, meets);
      compile_meetings(operations, meetings);
      if (!launched.empty()) compile_launch(operations, launched, is_batch);
    } else if (is_posted(first.comm)) {
      compile_posted(operations, parts);
    } else if (options_.model == BlockingModel::kBlocking) {
      meet(host_, parts);
    } else {
      compile_queued(operations, parts, is_batch, host_waits_for(first, is_batch));
    }
  }

  /// All are come to at once. One that the host does not wait for (blocking = 0) still has to come about.
  void compile_meetings(std::span<const Operation> operations, std::span<const Part> meetings) {
    std::vector<Part> waited;
    for (const Part& part : meetings) {
      if (!operations[part.operation].nonblocking() || options_.model == BlockingModel::kBlocking) {
        waited.push_back(part);
        continue;
      }
      add(host_, part.gate, part.operation, part.arrives, false);
      const Completion completion{part.gate, part.operation};
      LaunchQueue& queue = queues_[kMeetingQueue | to_size(operations[part.operation].comm)];
      if (part.waits) static_cast<void>(launches_.add({&completion, 1}, &queue, false));
    }
    if (waited.empty()) return;
    meet(host_, waited);
    if (host_can_block_) return;
    // Queues that are not told what the host issues are told that it has come past its meetings.
    host_has_met_ = GateIndex{add_gate()};
    add(host_, static_cast<std::uint32_t>(host_has_met_), waited.back().operation, true, false);
  }

  /// MPI and gloo have no queues: an operation is posted where it is called, and waited for there or by a later wait. A batch is
  /// MPI_Sendrecv and its like: all parts are posted before one is waited for.
  void compile_posted(std::span<const Operation> operations, std::span<const Part> parts) {
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
    if (nccl_) return false;
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
    find_launches_before(operations, parts, queue);
    // Behind what the host itself has started, a call that it waits for can only start when that has completed.
    if (host_waits && other_queues_.empty() && queue.on_actor == 0) {
      while (!queue.started_by_host.empty()) host_waits_for_launch(queue.started_by_host.front());
    }
    const bool starts_at_once = other_queues_.empty() && queue.is_idle() && before_.empty();
    const std::optional<LaunchIndex> launch = host_can_block_ && starts_at_once
                                                  ? start_by_host(operations, parts, host_waits ? nullptr : &queue)
                                                  : start_on_queue(operations, parts, queue, host_waits);
    if (!keeps_issue_order_ || !launch) return;
    for (const Part& part : parts) last_launches_[operations[part.operation].comm] = {*launch, &queue};
  }

  /// NCCL runs the launches of one communicator in the order of issue, whatever their streams: those that stand on other
  /// queues and come before this one.
  void find_launches_before(std::span<const Operation> operations, std::span<const Part> parts, const LaunchQueue& queue) {
    before_.clear();
    if (!keeps_issue_order_) return;
    for (const Part& part : parts) {
      const auto at = last_launches_.find(operations[part.operation].comm);
      if (at == last_launches_.end() || at->second.queue == &queue || launches_.is_waited(at->second.launch)) continue;
      if (std::ranges::find(before_, at->second.launch) == before_.end()) before_.push_back(at->second.launch);
    }
  }

  /// Nothing stands before the launch, so it starts where the host issues it. `queue` null: the host waits for it, too.
  std::optional<LaunchIndex> start_by_host(std::span<const Operation> operations, std::span<const Part> parts, LaunchQueue* queue) {
    if (queue == nullptr) {
      meet(host_, parts);
      return std::nullopt;
    }
    completions_.clear();
    for (const Part& part : parts) {
      add(host_, part.gate, part.operation, part.arrives, false);
      if (part.waits) completions_.push_back({part.gate, part.operation});
    }
    if (completions_.empty()) return std::nullopt;
    const LaunchIndex launch = launches_.add(completions_, queue, false);
    index_launch(launch, operations, parts);
    return launch;
  }

  std::optional<LaunchIndex> start_on_queue(std::span<const Operation> operations, std::span<const Part> parts, LaunchQueue& queue,
                      bool host_waits) {
    const std::uint32_t actor = actor_of(queue);
    const std::uint32_t mine = parts.front().operation;
    if (host_can_block_) {
      const std::uint32_t issued = add_gate();
      add(host_, issued, mine, true, false);
      add(actor, issued, mine, false, true);
    }
    for (const LaunchIndex before : before_) {
      for (const Completion& completion : launches_.completions(before)) {
        add(actor, completion.gate, completion.operation, false, true);
      }
    }
    // A launch over several queues is one synchronisation point of them all.
    for (LaunchQueue* other : other_queues_) {
      const std::uint32_t reached = add_gate();
      add(actor_of(*other), reached, mine, true, false);
      add(actor, reached, mine, false, true);
    }
    meet(actor, parts);
    if (!host_can_block_ && other_queues_.empty() && !keeps_issue_order_) return std::nullopt;
    const std::uint32_t done = add_gate();
    add(actor, done, mine, true, false);
    for (LaunchQueue* other : other_queues_) add(actor_of(*other), done, mine, false, true);
    if (host_waits) {
      add(host_, done, mine, false, true);
      return std::nullopt;
    }
    const Completion completion{done, mine};
    const LaunchIndex launch = launches_.add({&completion, 1}, &queue, true);
    index_launch(launch, operations, parts);
    // What comes to the other queues stands behind this launch as well.
    for (LaunchQueue* other : other_queues_) static_cast<void>(launches_.add({}, other, true));
    return launch;
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
                              (wait.stream == StringIndex{} && !nccl_);
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
    if (nccl_ && job_.implicit_launch_order()) return kNamed;
    if (operation.stream != StringIndex{}) return kNamed | to_size(operation.stream);
    if (nccl_) return kNamed;
    if (operation.comm == kNoComm) return kNamed;  // a stream wait without a stream
    const std::uint64_t comm = static_cast<std::uint64_t>(to_size(operation.comm)) << 32;
    const bool by_pair = is_point_to_point(operation.kind) && !is_batch && options_.model != BlockingModel::kEager;
    return by_pair ? comm | (static_cast<std::uint32_t>(operation.peer) + 1U) : comm;
  }

  /// The actor of a queue, made with what the host has started before standing at its head.
  std::uint32_t actor_of(LaunchQueue& queue) {
    if (queue.actor == LaunchQueue::kNoActor) queue.actor = add_actor();
    if (host_has_met_ != queue.host_has_met) {
      queue.host_has_met = host_has_met_;
      add(queue.actor, static_cast<std::uint32_t>(host_has_met_), script_.actors[host_].items.back().operation, false, true);
    }
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
  static constexpr std::uint64_t kMeetingQueue = std::uint64_t{1} << 62;
  const bool mpi_;
  const bool nccl_;
  const bool mixed_;
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
  std::unordered_map<CommIndex, CommunicatorMatch::Apart> apart_;  // calls made so far, where they are paired apart
  bool keeps_issue_order_ = false;
  struct LastLaunch {
    LaunchIndex launch = 0;
    const LaunchQueue* queue = nullptr;
  };
  std::unordered_map<CommIndex, LastLaunch> last_launches_;
  GateIndex host_has_met_ = kNoGate;        // opens when the host is past its meetings so far; kNoGate: it had none
  std::vector<LaunchQueue*> other_queues_;  // scratch
  std::vector<LaunchIndex> before_;         // scratch
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
      skips_empty_(job.library() == Library::kNccl && !options.empty_calls_meet), buffered_(256) {
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
