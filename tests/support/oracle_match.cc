// Who meets whom and whether they agree; and the verdict put together from that and the naive replay.
#include <set>

#include "support/oracle.h"

namespace lockstep::testing {
namespace {

const Operation& at(const Job& job, CallRef ref) { return job.programs()[ref.program].operations[ref.index]; }

/// Not stated on one side is no disagreement: a hand-written job may leave out what it does not care for.
template <class T>
bool both_stated_and_differ(const T& a, const T& b, const T& not_stated) {
  return a != not_stated && b != not_stated && a != b;
}

/// "act" for "act:0.2": the kind of thing that a message carries.
std::string_view payload_kind(std::string_view payload) { return payload.substr(0, payload.find(':')); }

/// NCCL has no tags.
std::uint32_t matching_tag(const Job& job, const Operation& op) {
  return job.library() == Library::kNccl ? kNoTag : op.tag;
}

std::size_t width(std::string_view datatype) {
  static const std::map<std::string_view, std::size_t> widths{
      {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"i8", 1}, {"u8", 1}, {"i32", 4}, {"u32", 4}, {"i64", 8}, {"u64", 8}};
  const auto known = widths.find(datatype);
  return known == widths.end() ? 0 : known->second;
}

std::string describe(const Job& job, CallRef ref) {
  const Operation& op = at(job, ref);
  std::string text = "rank " + std::to_string(job.programs()[ref.program].rank) + " call " + std::to_string(ref.index) +
                     " (" + std::string(op_name(op.kind));
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

void compare_messages(const Job& job, const Meetings& meetings, OracleVerdict& verdict) {
  for (const auto& [key, sides] : meetings.messages) {
    if (sides.sends.size() != sides.receives.size()) {
      verdict.imbalance = true;
      note(verdict, "messages from " + std::to_string(std::get<1>(key)) + " to " + std::to_string(std::get<2>(key)) +
                        ": " + std::to_string(sides.sends.size()) + " sent, " +
                        std::to_string(sides.receives.size()) + " received");
    }
    for (std::size_t i = 0; i < sides.sends.size() && i < sides.receives.size(); ++i) {
      const std::string what = message_disagreement(job, at(job, sides.sends[i]), at(job, sides.receives[i]));
      if (what.empty()) continue;
      verdict.mismatch = true;
      note(verdict, what + " differs: " + describe(job, sides.sends[i]) + ", " + describe(job, sides.receives[i]));
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

Meetings find_meetings(const Job& job) {
  Meetings meetings;
  for (std::size_t p = 0; p < job.programs().size(); ++p) {
    const Program& program = job.programs()[p];
    std::map<std::uint32_t, std::size_t> made;  // collectives of this rank so far, per communicator
    for (std::size_t i = 0; i < calls_made(program); ++i) {
      const Operation& op = program.operations[i];
      const auto comm = static_cast<std::uint32_t>(op.comm);
      if (is_collective(op.kind)) meetings.collectives[{comm, made[comm]++}].push_back({p, i});
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
  if (a.kind != b.kind) return "kind";
  if (has_root(a.kind) && both_stated_and_differ(a.peer, b.peer, kNoPeer)) return "root";
  if (!has_free_count(a.kind) && both_stated_and_differ(a.count, b.count, Count{})) return "count";
  if (both_stated_and_differ(a.datatype, b.datatype, DatatypeIndex{})) return "datatype";
  if (has_reduction(a.kind) && both_stated_and_differ(a.redop, b.redop, RedopIndex{})) return "reduction";
  if (a.kind == OpKind::kReduceScatterV &&
      both_stated_and_differ(job.extra(a).counts, job.extra(b).counts, {})) {
    return "counts";
  }
  return "";
}

std::string message_disagreement(const Job& job, const Operation& send, const Operation& receive) {
  const bool count_differs = both_stated_and_differ(send.count, receive.count, Count{});
  const bool numbers = send.count.is_number() && receive.count.is_number();
  const bool receive_has_room = job.library() == Library::kMpi && numbers && receive.count.number() > send.count.number();
  if (count_differs && !receive_has_room) return "count";
  if (both_stated_and_differ(send.datatype, receive.datatype, DatatypeIndex{})) return "datatype";
  const std::string_view sent = payload_kind(job.text(send.payload));
  const std::string_view expected = payload_kind(job.text(receive.payload));
  if (both_stated_and_differ(sent, expected, std::string_view{})) return "payload";
  return "";
}

bool blocks_each_other(const Job& job, const Operation& a, const Operation& b) {
  if (a.kind != b.kind) return true;
  if (has_root(a.kind) && both_stated_and_differ(a.peer, b.peer, kNoPeer)) return true;
  if (has_free_count(a.kind)) return false;
  const std::size_t width_a = width(job.datatype(a.datatype));
  const std::size_t width_b = width(job.datatype(b.datatype));
  if (a.count.is_number() && b.count.is_number() && width_a != 0 && width_b != 0) {
    return a.count.number() * width_a != b.count.number() * width_b;
  }
  return both_stated_and_differ(a.count, b.count, Count{}) || both_stated_and_differ(width_a, width_b, std::size_t{0});
}

OracleVerdict ask_oracle(const Job& job) {
  OracleVerdict verdict;
  const Meetings meetings = find_meetings(job);
  compare_collectives(job, meetings, verdict);
  count_collectives(job, meetings, verdict);
  compare_messages(job, meetings, verdict);
  for (const OracleModel model : kOracleModels) {
    verdict.deadlock[static_cast<std::size_t>(model)] = !run_naively(job, model).finished;
  }
  const OracleModel promised = job.library() == Library::kMpi ? OracleModel::kEager : OracleModel::kLazy;
  if (verdict.stuck(promised)) note(verdict, "all calls agree, but not all of them complete");
  verdict.wrong = verdict.mismatch || verdict.imbalance || verdict.stuck(promised);
  return verdict;
}

}  // namespace lockstep::testing
