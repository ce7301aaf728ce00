// Compiles a Job to a Script under the rules in replay.h.
#include "replay/script.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "replay/coupling.h"

namespace lockstep {
namespace {

/// What one operation does at its rendezvous.
struct Part {
  std::uint32_t gate = 0;
  std::uint32_t operation = 0;
  bool arrives = true;
  bool waits = true;
};

/// Issued operations that no wait has asked for yet. Every index forgets on its own: waiting twice is harmless.
class PendingOperations {
 public:
  struct Completion {
    std::uint32_t gate = 0;
    std::uint32_t operation = 0;
  };

  void add(const Operation& operation, Completion completion) {
    all_.push_back(completion);
    if (operation.handle != StringIndex{}) by_handle_[operation.handle].push_back(completion);
    if (operation.stream != StringIndex{}) by_stream_[operation.stream].push_back(completion);
    if (is_point_to_point(operation.kind)) by_peer_[operation.peer].push_back(completion);
  }

  /// What a wait operation waits for: its handle, its stream, its peer, else everything.
  std::vector<Completion> take(const Operation& wait) {
    if (wait.handle != StringIndex{}) return take_from(by_handle_, wait.handle);
    if (wait.stream != StringIndex{}) return take_from(by_stream_, wait.stream);
    if (wait.peer >= 0) return take_from(by_peer_, wait.peer);
    return std::exchange(all_, {});
  }

  void clear() {
    all_.clear();
    by_handle_.clear();
    by_stream_.clear();
    by_peer_.clear();
  }

 private:
  template <class Key>
  using Index = std::unordered_map<Key, std::vector<Completion>>;

  template <class Key>
  static std::vector<Completion> take_from(Index<Key>& index, Key key) {
    const auto at = index.find(key);
    if (at == index.end()) return {};
    std::vector<Completion> taken = std::move(at->second);
    index.erase(at);
    return taken;
  }

  std::vector<Completion> all_;
  Index<StringIndex> by_handle_;
  Index<StringIndex> by_stream_;
  Index<std::int32_t> by_peer_;
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
        if (!is_collective(at->kind) || at->comm == kNoComm) continue;
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
    pending_.clear();
    message_ordinal_ = 0;
    // Where the host never stops, its queues need not be told what it has issued.
    host_can_block_ =
        options_.model == BlockingModel::kBlocking || job_.library() != Library::kNccl || match_.traits[to_size(index)].waits;
    const auto operations = program.placed_operations();
    for (std::uint32_t i = 0; i < operations.size();) {
      if (op_class(operations[i].kind) == OpClass::kCompletion) {
        compile_wait(operations[i], i);
        ++i;
      } else if (operations[i].launch != 0) {
        i = compile_batch(operations, i);
      } else {
        if (const std::optional<Part> part = part_of(operations[i], i)) compile_launch(operations, {&*part, 1}, false);
        ++i;
      }
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
    const bool known_complete = options_.trust_completion && operation.state == OpState::kCompleted;
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
    if ((operation.flags & kOpCaptured) != 0) return std::nullopt;
    const CommunicatorMatch& communicator = match_.communicators[to_size(operation.comm)];
    if (!communicator.outsiders.empty() && std::ranges::find(communicator.outsiders, program_) != communicator.outsiders.end()) {
      return std::nullopt;
    }
    const GateIndex gate = communicator.gate_of(operation.seq);
    if (gate == kNoGate) return std::nullopt;
    Part part{.gate = static_cast<std::uint32_t>(gate),
              .operation = i,
              .waits = !known_complete};
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
      if (part.waits) pending_.add(operation, {part.gate, part.operation});
    }
    if (!waited.empty()) meet(host_, waited);
  }

  bool host_waits_for(const Operation& operation, bool is_batch) const {
    if (job_.library() == Library::kNccl) return false;
    return !is_batch && !is_immediate(operation.kind) && !operation.nonblocking();
  }

  void compile_queued(std::span<const Operation> operations, std::span<const Part> parts, bool is_batch,
                      bool host_waits) {
    const std::uint64_t key = queue_key(operations[parts.front().operation], is_batch);
    if (host_waits && !queues_.contains(key)) {
      meet(host_, parts);  // nothing stands before it: the host may do it itself
      return;
    }
    const std::uint32_t queue = queue_of(key);
    const std::uint32_t mine = parts.front().operation;
    if (host_can_block_) {
      const std::uint32_t issued = add_gate();
      add(host_, issued, mine, true, false);
      add(queue, issued, mine, false, true);
    }
    // A launch over several queues is one synchronisation point of them all.
    std::vector<std::uint32_t> others;
    for (const Part& part : parts) {
      const std::uint32_t other = queue_of(queue_key(operations[part.operation], is_batch));
      if (other == queue || std::ranges::find(others, other) != others.end()) continue;
      others.push_back(other);
      const std::uint32_t reached = add_gate();
      add(other, reached, mine, true, false);
      add(queue, reached, mine, false, true);
    }
    meet(queue, parts);
    if (!host_can_block_ && others.empty()) return;
    const std::uint32_t done = add_gate();
    add(queue, done, mine, true, false);
    for (const std::uint32_t other : others) add(other, done, mine, false, true);
    if (host_waits) {
      add(host_, done, mine, false, true);
    } else {
      for (const Part& part : parts) pending_.add(operations[part.operation], {done, part.operation});
    }
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
    for (const auto& completion : pending_.take(wait)) {
      if (!known_complete) add(host_, completion.gate, completion.operation, false, true);
    }
  }

  std::uint64_t queue_key(const Operation& operation, bool is_batch) const {
    constexpr std::uint64_t kNamed = std::uint64_t{1} << 63;
    if (operation.stream != StringIndex{}) return kNamed | to_size(operation.stream);
    if (job_.library() == Library::kNccl) return kNamed;
    const std::uint64_t comm = static_cast<std::uint64_t>(to_size(operation.comm)) << 32;
    const bool by_pair = is_point_to_point(operation.kind) && !is_batch && options_.model != BlockingModel::kEager;
    return by_pair ? comm | (static_cast<std::uint32_t>(operation.peer) + 1U) : comm;
  }

  std::uint32_t queue_of(std::uint64_t key) {
    if (const auto known = queues_.find(key); known != queues_.end()) return known->second;
    const std::uint32_t actor = add_actor();
    queues_.emplace(key, actor);
    return actor;
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
  std::unordered_map<std::uint64_t, std::uint32_t> queues_;  // key to actor
  PendingOperations pending_;
};

}  // namespace

bool is_buffered_send(Library library, BlockingModel model, OpKind kind) {
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
    : job_(job), match_(match), trust_completion_(options.trust_completion), buffered_(256) {
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
