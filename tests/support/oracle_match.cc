// Who meets whom and whether they agree; and the verdict put together from that and the naive replay.
#include <map>
#include <set>

#include "match/signature.h"
#include "support/oracle.h"

namespace lockstep::testing {
namespace {

const Operation& at(const Job& job, CallRef ref) { return job.programs()[ref.program].operations[ref.index]; }

/// Not stated on one side is no disagreement: a hand-written job may leave out what it does not care for.
template <class T>
bool both_stated_and_differ(const T& a, const T& b, const T& not_stated) {
  return a != not_stated && b != not_stated && a != b;
}

/// "act:0.2" and "act:0.2" are one thing, "act" may be any "act:..."; "act:0.2" is neither "act:0.3" nor
/// "grad".
bool payloads_differ(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty() || a == b) return false;
  const std::size_t colon_a = a.find(':');
  const std::size_t colon_b = b.find(':');
  if (a.substr(0, colon_a) != b.substr(0, colon_b)) return true;
  return colon_a != std::string_view::npos && colon_b != std::string_view::npos;
}

/// A blocking call and a nonblocking one are two different collectives in MPI (MPI 3.1, section 5.12).
bool blocking_differs(const Job& job, const Operation& a, const Operation& b) {
  return is_mpi(job, a) && a.nonblocking() != b.nonblocking();
}

/// NCCL has no tags.
std::uint32_t matching_tag(const Job& job, const Operation& op) {
  return is_nccl(job, op) ? kNoTag : op.tag;
}

/// Every member passes the counts of all: the list must be the same one.
bool same_counts_everywhere(OpKind kind) {
  return kind == OpKind::kReduceScatterV || kind == OpKind::kAllGatherV;
}

/// f32[3] and f16[6] are 12 bytes both; NCCL's collectives without a reduction move bytes.
bool same_bytes_in_nccl(const Job& job, const Operation& a, const Operation& b) {
  if (!is_nccl(job, a) || has_reduction(a.kind) || a.datatype == b.datatype) return false;
  if (!a.count.is_number() || !b.count.is_number()) return false;
  const std::size_t size_a = datatype_bytes(job.datatype(a.datatype));
  const std::size_t size_b = datatype_bytes(job.datatype(b.datatype));
  return size_a != 0 && size_b != 0 && a.count.number() * size_a == b.count.number() * size_b;
}

std::string describe(const Job& job, CallRef ref) {
  const Operation& op = at(job, ref);
  std::string text = "rank " + std::to_string(job.programs()[ref.program].rank) + " call " +
                     std::to_string(ref.index) + " (" + std::string(op_name(op.kind));
  if (op.comm != kNoComm) text += " " + job.communicator(op.comm).name;
  return text + ")";
}

void note(OracleVerdict& verdict, const std::string& reason) {
  if (verdict.reason.empty()) verdict.reason = reason;
}

void compare_collectives(const Job& job, const Meetings& meetings, OracleVerdict& verdict) {
  for (const auto& [key, calls] : meetings.collectives) {
    for (const CallRef a : calls) {
      for (const CallRef b : calls) {
        const std::string what = collective_disagreement(job, at(job, a), at(job, b));
        if (what.empty()) continue;
        verdict.mismatch = true;
        note(verdict, what + " differs: " + describe(job, a) + ", " + describe(job, b));
      }
    }
  }
}

void count_collectives(const Job& job, const Meetings& meetings, OracleVerdict& verdict) {
  for (const auto& [key, calls] : meetings.collectives) {
    const auto& [comm, position] = key;
    std::set<std::int32_t> present;
    for (const CallRef call : calls) present.insert(job.programs()[call.program].rank);
    for (const std::int32_t member : job.communicators()[comm].members) {
      if (present.contains(member)) continue;
      verdict.imbalance = true;
      note(verdict, "rank " + std::to_string(member) + " makes no call " + std::to_string(position) + " on " +
                        job.communicators()[comm].name);
    }
  }
}

/// NCCL: calls that some members launch in one group with the call before, and others do not.
void compare_groups(const Job& job, const Meetings& meetings, OracleVerdict& verdict) {
  std::map<std::pair<std::uint32_t, std::size_t>, std::set<bool>> joined;  // by communicator and position
  std::map<std::pair<std::uint32_t, std::size_t>, std::uint32_t> last;     // by communicator and program: launch of the call before
  for (const auto& [key, calls] : meetings.collectives) {
    for (const CallRef call : calls) {
      if (!is_nccl(job, at(job, call))) continue;
      std::uint32_t& before = last[{key.first, call.program}];
      const std::uint32_t launch = at(job, call).launch;
      joined[key].insert(launch != 0 && launch == before);
      before = launch;
    }
    if (joined[key].size() < 2) continue;
    verdict.mismatch = true;
    note(verdict, "other groups around call " + std::to_string(key.second) + " on " + job.communicators()[key.first].name);
  }
}

void compare_messages(const Job& job, const Meetings& meetings, OracleVerdict& verdict) {
  for (const auto& [key, sides] : meetings.messages) {
    if (sides.sends.size() != sides.receives.size()) {
      verdict.imbalance = true;
      note(verdict, "messages from " + std::to_string(std::get<1>(key)) + " to " +
                        std::to_string(std::get<2>(key)) + ": " + std::to_string(sides.sends.size()) +
                        " sent, " + std::to_string(sides.receives.size()) + " received");
    }
    for (std::size_t i = 0; i < sides.sends.size() && i < sides.receives.size(); ++i) {
      const std::string what = message_disagreement(job, at(job, sides.sends[i]), at(job, sides.receives[i]));
      if (what.empty()) continue;
      verdict.mismatch = true;
      note(verdict,
           what + " differs: " + describe(job, sides.sends[i]) + ", " + describe(job, sides.receives[i]));
    }
  }
}

}  // namespace

std::size_t calls_made(const Program& program) {
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    if (program.operations[i].kind == OpKind::kExit) return i;
  }
  return program.operations.size();
}

bool is_nccl(const Job& job, const Operation& op) { return job.library_of(op.comm) == Library::kNccl; }
bool is_mpi(const Job& job, const Operation& op) { return job.library_of(op.comm) == Library::kMpi; }
bool is_nothing(const Job& job, const Operation& op) {
  const bool has_count = op_class(op.kind) == OpClass::kCollective && !has_free_count(op.kind);
  return is_nccl(job, op) && has_count && op.count == Count::of(0);
}

Meetings find_meetings(const Job& job) {
  Meetings meetings;
  for (std::size_t p = 0; p < job.programs().size(); ++p) {
    const Program& program = job.programs()[p];
    std::map<std::pair<std::uint32_t, char>, std::size_t> sorts;
    std::map<std::uint32_t, std::size_t> made;  // collectives of this rank so far, per communicator
    for (std::size_t i = 0; i < calls_made(program); ++i) {
      const Operation& op = program.operations[i];
      const auto comm = static_cast<std::uint32_t>(op.comm);
      if (is_collective(op.kind)) {
        meetings.collectives[{comm, made[comm]++}].push_back({p, i});
        const bool meets_hosts = is_nccl(job, op) && op_class(op.kind) != OpClass::kCollective;
        const char sort = meets_hosts ? 'h' : is_nothing(job, op) ? '0' : 'l';
        meetings.rendezvous[{comm, sort, sorts[{comm, sort}]++}].push_back({p, i});
      }
      if (is_send(op.kind)) {
        meetings.messages[{comm, program.rank, op.peer, matching_tag(job, op)}].sends.push_back({p, i});
      }
      if (is_receive(op.kind)) {
        meetings.messages[{comm, op.peer, program.rank, matching_tag(job, op)}].receives.push_back({p, i});
      }
    }
  }
  return meetings;
}

std::string collective_disagreement(const Job& job, const Operation& a, const Operation& b) {
  if (a.kind != b.kind || blocking_differs(job, a, b)) return "kind";
  if (has_root(a.kind) && both_stated_and_differ(a.peer, b.peer, kNoPeer)) return "root";
  if (!has_free_count(a.kind) && both_stated_and_differ(a.count, b.count, Count{})) {
    return same_bytes_in_nccl(job, a, b) ? "datatype" : "count";
  }
  if (both_stated_and_differ(a.datatype, b.datatype, DatatypeIndex{})) return "datatype";
  if (has_reduction(a.kind) && both_stated_and_differ(a.redop, b.redop, RedopIndex{})) return "reduction";
  if (same_counts_everywhere(a.kind) &&
      both_stated_and_differ(job.extra(a).counts, job.extra(b).counts, {})) {
    return "counts";
  }
  if (both_stated_and_differ(job.extra(a).members, job.extra(b).members, {})) return "members";
  return "";
}

std::string message_disagreement(const Job& job, const Operation& send, const Operation& receive) {
  const bool count_differs = both_stated_and_differ(send.count, receive.count, Count{});
  const bool numbers = send.count.is_number() && receive.count.is_number();
  const bool receive_has_room =
      is_mpi(job, send) && numbers && receive.count.number() > send.count.number();
  if (count_differs && !receive_has_room) return "count";
  if (both_stated_and_differ(send.datatype, receive.datatype, DatatypeIndex{})) return "datatype";
  if (payloads_differ(job.text(send.payload), job.text(receive.payload))) return "payload";
  return "";
}

bool blocks_each_other(const Job& job, const Operation& a, const Operation& b) {
  const std::string what = collective_disagreement(job, a, b);
  return what == "kind" || what == "root" || what == "count" || what == "counts" || what == "members";
}

OracleVerdict ask_oracle(const Job& job) {
  OracleVerdict verdict;
  const Meetings meetings = find_meetings(job);
  compare_collectives(job, meetings, verdict);
  count_collectives(job, meetings, verdict);
  compare_messages(job, meetings, verdict);
  if (job.library() == Library::kNccl) compare_groups(job, meetings, verdict);
  for (const OracleModel model : kOracleModels) {
    verdict.deadlock[static_cast<std::size_t>(model)] = !run_naively(job, model).finished();
  }
  const OracleModel promised = job.library() == Library::kMpi ? OracleModel::kEager : OracleModel::kLazy;
  if (verdict.stuck(promised)) note(verdict, "all calls agree, but not all of them complete");
  const bool breaks_contract = job.library() == Library::kNccl && !run_naively(job, promised, true, true).finished();
  if (breaks_contract) note(verdict, "communicators stand in other orders inside groups");
  verdict.wrong = verdict.mismatch || verdict.imbalance || verdict.stuck(promised) || breaks_contract;
  return verdict;
}

}  // namespace lockstep::testing
