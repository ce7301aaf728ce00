// Runs all programs together by sweeping over every call until a sweep changes nothing.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "match/signature.h"
#include "support/oracle.h"

namespace lockstep::testing {
namespace {

/// What the sweeps know about one call. Each flag goes from false to true once and never back.
struct CallState {
  bool issued = false;   ///< the host came to it
  bool started = false;  ///< it is at the head of its queue
  bool met = false;      ///< its partners have started too (or it needs none)
};

/// Calls of one rank with equal queues start one after the other.
using Queue = std::tuple<char, std::uint32_t, std::int32_t, std::int32_t>;

class NaiveReplay {
 public:
  NaiveReplay(const Job& job, OracleModel model, bool trust_completion, bool as_written)
      : job_(job), model_(model), trust_completion_(trust_completion), as_written_(as_written), meetings_(find_meetings(job)) {
    for (std::size_t p = 0; p < job.programs().size(); ++p) {
      states_.emplace_back(calls_made(job.programs()[p]));
      partners_.emplace_back(states_.back().size());
      host_.push_back(0);
    }
    find_partners();
    if (nccl()) forgive_sorted_groups();
    if (model_ == OracleModel::kCoupled && !mpi())
      label_coupled_batches();  // MPI has no batches that run as one
  }

  OracleRun run() {
    while (sweep()) {
    }
    OracleRun result;
    for (std::size_t p = 0; p < states_.size(); ++p) {
      std::vector<bool> issued;
      std::vector<bool> started;
      std::vector<bool> done;
      for (std::size_t i = 0; i < states_[p].size(); ++i) {
        issued.push_back(states_[p][i].issued);
        started.push_back(states_[p][i].started);
        done.push_back(completed({p, i}));
      }
      // In MPI nobody waits for an operation that no wait names; a queue stands still whoever waits.
      bool queues_empty = true;
      for (std::size_t i = 0; i < done.size(); ++i) queues_empty = queues_empty && (done[i] || mpi(op({p, i})));
      if (host_[p] < states_[p].size() || !queues_empty) result.stuck.push_back(p);
      result.issued.push_back(std::move(issued));
      result.started.push_back(std::move(started));
      result.completed.push_back(std::move(done));
    }
    return result;
  }

 private:
  const Operation& op(CallRef call) const { return job_.programs()[call.program].operations[call.index]; }
  const CallState& state(CallRef call) const { return states_[call.program][call.index]; }
  bool mpi() const { return job_.library() == Library::kMpi; }
  bool nccl() const { return job_.library() == Library::kNccl; }
  bool mpi(const Operation& o) const { return is_mpi(job_, o); }
  bool nccl(const Operation& o) const { return is_nccl(job_, o); }
  /// In a program of NCCL the models are about NCCL, and MPI is as lenient as it may be but for the strict one.
  bool mpi_is_eager() const {
    return mpi() ? model_ == OracleModel::kEager : model_ != OracleModel::kBlocking;
  }
  /// Making and ending a communicator of NCCL holds the host, not a stream.
  bool meets_hosts(const Operation& o) const {
    return nccl(o) && is_collective(o.kind) && op_class(o.kind) != OpClass::kCollective;
  }

  /// All members' calls of a collective, or the other side of a message; empty for what nobody else takes
  /// part in.
  const std::vector<CallRef>& partners(CallRef call) const { return partners_[call.program][call.index]; }

  void find_partners() {
    for (const auto& [key, calls] : meetings_.rendezvous) {
      for (const CallRef call : calls) partners_[call.program][call.index] = calls;
      for (const CallRef a : calls) {
        for (const CallRef b : calls) {
          if (blocks_each_other(job_, op(a), op(b))) clashing_.insert(calls.begin(), calls.end());
        }
      }
    }
    for (const auto& [key, sides] : meetings_.messages) {
      for (std::size_t i = 0; i < sides.sends.size() && i < sides.receives.size(); ++i) {
        const CallRef send = sides.sends[i];
        const CallRef receive = sides.receives[i];
        partners_[send.program][send.index] = {receive};
        partners_[receive.program][receive.index] = {send};
      }
    }
  }

  /// How large NCCL takes a call to be when it sorts a group: the power of two below it, and the quarter it lies in.
  static std::pair<int, int> size_class(double bytes) {
    if (bytes < 4) return {-1, static_cast<int>(bytes)};
    int power = 0;
    double low = 1;
    while (low * 2 <= bytes) {
      low *= 2;
      ++power;
    }
    return {power, static_cast<int>((bytes - low) / (low / 4))};
  }

  /// The collectives of one rank on a communicator in the order in which NCCL runs them: each group sorted, largest first.
  std::vector<CallRef> sorted_groups(const std::vector<CallRef>& calls) const {
    const auto key = [&](CallRef call) {
      const Operation& o = op(call);
      const double size = std::max(1.0, static_cast<double>(datatype_bytes(job_.datatype(o.datatype))));
      const auto [power, quarter] = size_class(o.count.is_number() ? static_cast<double>(o.count.number()) * size : 0.0);
      return std::tuple(-power, -quarter, o.kind, job_.redop(o.redop), job_.datatype(o.datatype));
    };
    std::vector<CallRef> sorted;
    for (const CallRef call : calls) {
      // Insertion: behind all calls of the same group that do not come after it.
      auto at = sorted.end();
      while (at != sorted.begin()) {
        const CallRef before = *(at - 1);
        if (op(call).launch == 0 || op(before).launch != op(call).launch || !(key(call) < key(before))) break;
        --at;
      }
      sorted.insert(at, call);
    }
    return sorted;
  }

  /// Calls that only stand in another order inside equal groups do not keep each other from completing.
  void forgive_sorted_groups() {
    for (std::uint32_t comm = 0; comm < job_.communicators().size(); ++comm) {
      std::map<std::size_t, std::vector<CallRef>> made;  // by program
      for (const auto& [key, calls] : meetings_.rendezvous) {
        if (std::get<0>(key) != comm || std::get<1>(key) != 'l') continue;
        for (const CallRef call : calls) made[call.program].push_back(call);
      }
      bool forgiven = made.size() > 1 && nccl(op(made.begin()->second.front()));
      for (const auto& [program, calls] : made) {
        const std::vector<CallRef>& first = made.begin()->second;
        forgiven = forgiven && calls.size() == first.size();
        for (std::size_t i = 0; forgiven && i < calls.size(); ++i) {
          const auto joins = [&](const std::vector<CallRef>& of) {
            return i > 0 && op(of[i]).launch != 0 && op(of[i]).launch == op(of[i - 1]).launch;
          };
          const std::vector<CallRef> ours = sorted_groups(calls);
          const std::vector<CallRef> theirs = sorted_groups(first);
          forgiven = joins(calls) == joins(first) && collective_disagreement(job_, op(ours[i]), op(theirs[i])).empty();
        }
      }
      if (!forgiven) continue;
      for (const auto& [program, calls] : made) {
        for (const CallRef call : calls) clashing_.erase(call);
      }
    }
  }

  bool sweep() {
    bool changed = false;
    for (std::size_t p = 0; p < states_.size(); ++p) {
      changed = move_host(p) || changed;
      for (std::size_t i = 0; i < states_[p].size(); ++i) {
        CallState& call = states_[p][i];
        if (call.issued && !call.started && may_start({p, i})) changed = call.started = true;
        if (call.started && !call.met && meets({p, i})) changed = call.met = true;
      }
    }
    return changed;
  }

  /// The calls that are issued together with this one, itself included: [first, end) of its program.
  std::pair<std::size_t, std::size_t> batch_of(CallRef call) const {
    const std::uint32_t launch = op(call).launch;
    std::size_t first = call.index;
    std::size_t end = call.index + 1;
    if (launch == 0) return {first, end};
    while (first > 0 && op({call.program, first - 1}).launch == launch) --first;
    while (end < states_[call.program].size() && op({call.program, end}).launch == launch) ++end;
    return {first, end};
  }

  /// The calls that start and end together with this one: its batch, or what that has on the same communicator.
  std::vector<std::size_t> unit_of(CallRef call) const {
    std::vector<std::size_t> unit;
    const auto [first, end] = batch_of(call);
    for (std::size_t i = first; i < end; ++i) {
      if (!as_written_ || op({call.program, i}).comm == op(call).comm) unit.push_back(i);
    }
    return unit;
  }

  bool move_host(std::size_t p) {
    bool changed = false;
    while (host_[p] < states_[p].size()) {
      const auto [first, end] = batch_of({p, host_[p]});
      bool must_wait = false;
      for (std::size_t i = first; i < end; ++i) {
        changed = changed || !states_[p][i].issued;
        states_[p][i].issued = true;
        must_wait = must_wait || (host_waits_for({p, i}) && !completed({p, i}));
      }
      if (must_wait) break;
      host_[p] = end;
      changed = true;
    }
    return changed;
  }

  bool host_waits_for(CallRef call) const {
    const Operation& operation = op(call);
    if (operation.kind == OpKind::kEventRecord || operation.kind == OpKind::kStreamWait) return false;
    if (op_class(operation.kind) == OpClass::kCompletion) return true;
    if (!takes_part(operation)) return false;
    if (model_ == OracleModel::kBlocking && !mpi(operation)) return true;
    if (meets_hosts(operation)) return !operation.nonblocking();
    if (nccl(operation)) return false;
    const bool issued_only = is_immediate(operation.kind) || operation.nonblocking() ||
                             operation.handle != StringIndex{} ||
                             (!mpi(operation) && operation.stream != StringIndex{});
    if (mpi(operation)) return !issued_only;
    return !issued_only && operation.launch == 0;
  }

  static bool takes_part(const Operation& operation) {
    return is_collective(operation.kind) || is_point_to_point(operation.kind);
  }

  std::optional<Queue> queue_of(CallRef call) const {
    const Operation& operation = op(call);
    if (mpi(operation) || (!takes_part(operation) && operation.kind != OpKind::kStreamWait)) return std::nullopt;
    if (meets_hosts(operation) || is_nothing(job_, operation)) return std::nullopt;
    if (nccl() && job_.implicit_launch_order()) return Queue{'s', 0, 0, 0};
    if (nccl() || operation.stream != StringIndex{})
      return Queue{'s', static_cast<std::uint32_t>(operation.stream), 0, 0};
    const auto comm = static_cast<std::uint32_t>(operation.comm);
    if (model_ != OracleModel::kEager && is_point_to_point(operation.kind) && operation.launch == 0) {
      const std::int32_t rank = job_.programs()[call.program].rank;
      return Queue{'p', comm, std::min(rank, operation.peer), std::max(rank, operation.peer)};
    }
    return Queue{'c', comm, 0, 0};
  }

  bool known_completed(CallRef call) const {
    if (!trust_completion_) return false;
    if (op(call).state == OpState::kCompleted) return true;
    if (!takes_part(op(call))) return false;
    // Or a wait of the host that returned was for it.
    for (std::size_t i = call.index + 1; i < states_[call.program].size(); ++i) {
      const CallRef wait{call.program, i};
      if (op(wait).state != OpState::kCompleted) continue;
      const std::vector<CallRef> targets = awaited_by_host(wait);
      if (std::ranges::find(targets, call) != targets.end()) return true;
    }
    return false;
  }

  /// What stood before place `end` of the program on the stream.
  std::vector<CallRef> on_stream(std::size_t program, StringIndex stream, std::size_t end) const {
    std::vector<CallRef> calls;
    for (std::size_t i = 0; i < end; ++i) {
      const Operation& earlier = op({program, i});
      const bool queued = takes_part(earlier) || earlier.kind == OpKind::kStreamWait;
      if (queued && earlier.stream == stream) calls.push_back({program, i});
    }
    return calls;
  }

  /// What a wait on a stream, an event or the device is for (NCCL).
  std::vector<CallRef> awaited_by_host(CallRef wait) const {
    const Operation& operation = op(wait);
    std::vector<CallRef> calls;
    if (operation.kind == OpKind::kStreamSync) return on_stream(wait.program, operation.stream, wait.index);
    if (operation.kind == OpKind::kDeviceSync) {
      for (std::size_t i = 0; i < wait.index; ++i) {
        const Operation& earlier = op({wait.program, i});
        if (takes_part(earlier) || earlier.kind == OpKind::kStreamWait) calls.push_back({wait.program, i});
      }
    }
    if (operation.kind == OpKind::kEventSync || operation.kind == OpKind::kStreamWait) {
      for (std::size_t i = wait.index; i-- > 0;) {
        const Operation& earlier = op({wait.program, i});
        if (earlier.kind != OpKind::kEventRecord || earlier.handle != operation.handle) continue;
        return on_stream(wait.program, earlier.stream, i);
      }
    }
    return calls;
  }

  /// A batch starts as a whole: every part must be at the head of its queue.
  bool may_start(CallRef call) const {
    if (known_completed(call)) return true;
    const std::vector<std::size_t> unit = unit_of(call);
    for (const std::size_t part : unit) {
      if (!known_completed({call.program, part}) && !at_head({call.program, part}, unit.front())) return false;
    }
    return true;
  }

  bool at_head(CallRef call, std::size_t first_of_unit) const {
    const std::optional<Queue> queue = queue_of(call);
    if (!queue) return true;
    for (std::size_t i = first_of_unit; i-- > 0;) {
      if (queue_of({call.program, i}) == queue && !completed({call.program, i})) return false;
      if (issued_after(call, {call.program, i}) && !completed({call.program, i})) return false;
    }
    return true;
  }

  /// NCCL runs what is issued to one communicator in that order, on whatever streams.
  bool issued_after(CallRef call, CallRef earlier) const {
    const auto is_launch = [&](CallRef c) { return takes_part(op(c)) && nccl(op(c)) && queue_of(c).has_value(); };
    return is_launch(call) && is_launch(earlier) && op(call).comm == op(earlier).comm;
  }

  /// Has a started call met what it needs?
  bool meets(CallRef call) const {
    if (known_completed(call)) return true;
    const Operation& operation = op(call);
    if (is_collective(operation.kind)) return collective_meets(call);
    if (is_point_to_point(operation.kind)) return message_meets(call);
    switch (operation.kind) {
      case OpKind::kWait:
        return std::ranges::all_of(awaited_by(call), [this](CallRef target) { return completed(target); });
      case OpKind::kWaitAny:
      case OpKind::kWaitSome: {
        const std::vector<CallRef> targets = awaited_by(call);
        return targets.empty() ||
               std::ranges::any_of(targets, [this](CallRef target) { return completed(target); });
      }
      case OpKind::kStreamSync:
      case OpKind::kDeviceSync:
      case OpKind::kEventSync:
      case OpKind::kStreamWait:
        return std::ranges::all_of(awaited_by_host(call), [this](CallRef target) { return completed(target); });
      case OpKind::kProbe:
        return probe_meets(call);
      default:  // markers, local calls, tests: nobody else is needed
        return true;
    }
  }

  bool collective_meets(CallRef call) const {
    const Operation& operation = op(call);
    const std::vector<CallRef>& present = partners(call);
    if (is_nothing(job_, operation)) return true;
    if (clashing_.contains(call)) return false;
    const auto started_on = [&](std::int32_t rank) {
      return std::ranges::any_of(present, [&](CallRef other) {
        return job_.programs()[other.program].rank == rank && state(other).started;
      });
    };
    if (mpi(operation) && mpi_is_eager() && has_root(operation.kind)) {
      const bool root = job_.programs()[call.program].rank == operation.peer;
      const bool from_root = operation.kind == OpKind::kBroadcast || operation.kind == OpKind::kScatter ||
                             operation.kind == OpKind::kScatterV;
      if (from_root) return root || started_on(operation.peer);
      if (!root) return true;
    }
    return std::ranges::all_of(job_.communicator(operation.comm).members, started_on);
  }

  bool message_meets(CallRef call) const {
    const OpKind kind = op(call).kind;
    if (kind == OpKind::kBsend || kind == OpKind::kIbsend) return true;
    const bool standard = kind == OpKind::kSend || kind == OpKind::kIsend;
    if (mpi(op(call)) && mpi_is_eager() && standard) return true;
    if (nccl(op(call)) && model_ == OracleModel::kEager && kind == OpKind::kSend) return true;
    return !partners(call).empty() && state(partners(call).front()).started;
  }

  /// A probe sees the message that the next receive from there would take.
  bool probe_meets(CallRef call) const {
    const Operation& operation = op(call);
    const std::int32_t rank = job_.programs()[call.program].rank;
    const auto sides = meetings_.messages.find(
        {static_cast<std::uint32_t>(operation.comm), operation.peer, rank, nccl(operation) ? kNoTag : operation.tag});
    if (sides == meetings_.messages.end()) return false;
    const auto taken = static_cast<std::size_t>(std::ranges::count_if(
        sides->second.receives, [call](CallRef receive) { return receive.index < call.index; }));
    return taken < sides->second.sends.size() && state(sides->second.sends[taken]).started;
  }

  /// The calls that a wait names: by handle; without one, every earlier call that was issued without waiting.
  std::vector<CallRef> awaited_by(CallRef wait) const {
    std::vector<CallRef> targets;
    for (std::size_t i = 0; i < wait.index; ++i) {
      const Operation& earlier = op({wait.program, i});
      if (!takes_part(earlier)) continue;
      if (op(wait).handle != StringIndex{} ? earlier.handle == op(wait).handle
                                           : named_by_wait(op(wait), earlier)) {
        targets.push_back({wait.program, i});
      }
    }
    return targets;
  }

  static bool named_by_wait(const Operation& wait, const Operation& earlier) {
    return (wait.comm == kNoComm || wait.comm == earlier.comm) &&
           (wait.peer == kNoPeer || wait.peer == earlier.peer);
  }

  /// A call is over when its batch is; coupled: when every batch is that it exchanges messages with, and so
  /// on. A single call that meets a part of a batch is over with that batch.
  bool completed(CallRef call) const {
    bool all_met = true;
    bool all_known = true;
    for (const std::size_t part : unit_of(call)) {
      all_met = all_met && states_[call.program][part].met;
      all_known = all_known && known_completed({call.program, part});
    }
    if (!all_met || all_known || !label_.contains(call)) return all_met;
    return std::ranges::all_of(coupled_.at(label_.at(call)),
                               [this](CallRef part) { return state(part).met; });
  }

  /// Gives all parts of batches that exchange messages one label, by lowering labels until none changes.
  void label_coupled_batches() {
    for (std::size_t p = 0; p < states_.size(); ++p) {
      for (std::size_t i = 0; i < states_[p].size(); ++i) {
        if (op({p, i}).launch != 0 || is_point_to_point(op({p, i}).kind))
          label_[{p, i}] = {p, batch_of({p, i}).first};
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& [call, label] : label_) {
        const auto lower_to = [&](CallRef other) {
          const auto found = label_.find(other);
          if (found == label_.end() || !(found->second < label)) return;
          label = found->second;
          changed = true;
        };
        const auto [first, end] = batch_of(call);
        for (std::size_t part = first; part < end; ++part) lower_to({call.program, part});
        if (is_point_to_point(op(call).kind)) std::ranges::for_each(partners(call), lower_to);
      }
    }
    // Batches wait for each other's messages; a collective among the parts holds its own batch only.
    for (const auto& [call, label] : label_) {
      coupled_[label];
      if (is_point_to_point(op(call).kind)) coupled_[label].push_back(call);
    }
  }

  const Job& job_;
  OracleModel model_;
  bool trust_completion_;
  bool as_written_;
  Meetings meetings_;
  std::vector<std::vector<CallState>> states_;
  std::vector<std::vector<std::vector<CallRef>>> partners_;
  std::set<CallRef> clashing_;     // collectives whose members differ in kind, root or size
  std::vector<std::size_t> host_;  // next call that the host has not passed
  std::map<CallRef, CallRef> label_;
  std::map<CallRef, std::vector<CallRef>> coupled_;
};

}  // namespace

OracleRun run_naively(const Job& job, OracleModel model, bool trust_completion, bool as_written) {
  return NaiveReplay(job, model, trust_completion, as_written).run();
}

}  // namespace lockstep::testing
