// See the header.
#include "diagnose/cycle_finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rank_ranges.h"
#include "diagnose/call_counts.h"
#include "diagnose/collective_findings.h"
#include "diagnose/departure.h"
#include "diagnose/site_words.h"
#include "diagnose/standstill_findings.h"
#include "diagnose/wrong_peer.h"

namespace lockstep {
namespace {

bool contains(const std::vector<std::int32_t>& sorted, std::int32_t rank) { return std::ranges::binary_search(sorted, rank); }

/// A call inside a cycle that one of its ranks did not make.
struct CycleCall {
  const StuckGate* stuck = nullptr;
  ProgramIndex caller = kNoProgram;  ///< stands in it
  std::uint32_t operation = 0;
  ProgramIndex absentee = kNoProgram;  ///< of the cycle, and not there
};

class CycleReader {
 public:
  CycleReader(const Describer& describe, const ReplayResult& replay, const Cause& cause)
      : describe_(describe), job_(describe.job()), replay_(replay), cause_(cause) {}

  /// One entry per rendezvous of the cycle at which one of its ranks has no call in its record.
  std::vector<CycleCall> calls_never_made() const {
    std::vector<CycleCall> calls;
    for (const std::size_t s : cause_.stuck) {
      const StuckGate& stuck = replay_.stuck[s];
      const auto absentee =
          std::ranges::find_if(stuck.never, [&](std::int32_t rank) { return contains(cause_.ranks, rank); });
      if (absentee == stuck.never.end()) continue;
      const BlockedOperation* blocked = blocked_at(s);
      if (blocked == nullptr) continue;
      calls.push_back({.stuck = &stuck,
                       .caller = blocked->program,
                       .operation = blocked->operation,
                       .absentee = job_.program_of_rank(*absentee)});
    }
    return calls;
  }

  const BlockedOperation* blocked_at(std::size_t stuck) const {
    const auto at = std::ranges::find(replay_.blocked, stuck, &BlockedOperation::stuck);
    return at == replay_.blocked.end() ? nullptr : &*at;
  }

  /// Two ranks of the cycle that stand in calls which the other does not make, where what they did before tells which of them left
  /// the path.
  std::optional<Departure> departure(const std::vector<CycleCall>& calls) const {
    constexpr std::size_t kMostPairs = 4;  // the pairs of a cycle tell the same
    std::size_t pairs = 0;
    for (const CycleCall& call : calls) {
      if (pairs++ == kMostPairs) break;
      const auto other = std::ranges::find_if(replay_.blocked, [&](const BlockedOperation& blocked) {
        return blocked.program == call.absentee && std::ranges::binary_search(cause_.stuck, blocked.stuck);
      });
      if (other == replay_.blocked.end() || call.absentee == kNoProgram) continue;
      const auto departure = find_departure(describe_, {call.caller, call.operation}, {other->program, other->operation});
      if (departure) return departure;
    }
    return std::nullopt;
  }

  /// Where a rank of the cycle stands.
  const StuckGate* stuck_of(ProgramIndex program) const {
    const auto at = std::ranges::find_if(replay_.blocked, [&](const BlockedOperation& blocked) {
      return blocked.program == program && std::ranges::binary_search(cause_.stuck, blocked.stuck);
    });
    return at == replay_.blocked.end() ? nullptr : &replay_.stuck[at->stuck];
  }

  /// One call site makes collectives on different communicators of the cycle.
  bool same_line_on_other_groups() const {
    const Operation* first = nullptr;
    for (const std::size_t s : cause_.stuck) {
      const BlockedOperation* blocked = blocked_at(s);
      if (blocked == nullptr) return false;
      const Operation& operation = describe_.operation(blocked->program, blocked->operation);
      if (operation.site == SiteIndex{} || !is_collective(operation.kind)) return false;
      if (first == nullptr) first = &operation;
      if (operation.site != first->site || operation.kind != first->kind) return false;
    }
    return cause_.stuck.size() > 1;
  }

  bool all_messages() const {
    return std::ranges::all_of(cause_.stuck, [&](std::size_t s) {
      const GateIndex gate = replay_.stuck[s].gate;
      return gate == kNoGate || owner_of(describe_.match(), gate).comm == kNoComm;
    });
  }

  /// Messages and collectives of one group.
  bool on_one_communicator() const {
    std::set<CommIndex> communicators;
    for (const std::size_t s : cause_.stuck) {
      const BlockedOperation* blocked = blocked_at(s);
      if (blocked == nullptr) return false;
      communicators.insert(describe_.operation(blocked->program, blocked->operation).comm);
    }
    return communicators.size() == 1;
  }

  /// Ranks of the cycle by the rendezvous they stand at, largest set first.
  std::vector<std::vector<std::int32_t>> parties() const {
    std::map<std::size_t, std::set<std::int32_t>> by_stuck;
    std::set<std::int32_t> placed;
    for (const BlockedOperation& blocked : replay_.blocked) {
      const std::int32_t rank = job_.program(blocked.program).rank;
      if (!contains(cause_.ranks, rank) || !std::ranges::binary_search(cause_.stuck, blocked.stuck)) continue;
      if (placed.insert(rank).second) by_stuck[blocked.stuck].insert(rank);
    }
    std::vector<std::vector<std::int32_t>> parties;
    for (const auto& [stuck, ranks] : by_stuck) parties.emplace_back(ranks.begin(), ranks.end());
    std::ranges::stable_sort(parties, std::greater{}, &std::vector<std::int32_t>::size);
    return parties;
  }

 private:
  const Describer& describe_;
  const Job& job_;
  const ReplayResult& replay_;
  const Cause& cause_;
};

/// The call whose absence best explains a cycle of records that end where they hang: one that the absentee has made before,
/// and that follows most closely on the one before it, for a call that a loop repeats comes soon after its last.
const CycleCall* most_telling(const Describer& describe, const std::vector<CycleCall>& calls) {
  const CycleCall* best = nullptr;
  std::uint32_t best_gap = std::numeric_limits<std::uint32_t>::max();
  for (const CycleCall& call : calls) {
    const Operation& operation = describe.operation(call.caller, call.operation);
    if (!is_collective(operation.kind) || call.absentee == kNoProgram) continue;
    const std::uint32_t by_absentee =
        count_like(describe, call.absentee, operation.comm, call.caller, call.operation);
    const std::uint32_t by_caller = count_like(describe, call.caller, operation.comm, call.caller, call.operation);
    if (by_absentee == 0 || by_absentee >= by_caller) continue;
    const std::uint32_t gap =
        gap_to_previous(describe, call.caller, call.operation).value_or(std::numeric_limits<std::uint32_t>::max() - 1);
    if (gap < best_gap) {
      best_gap = gap;
      best = &call;
    }
  }
  return best;
}

/// Of a new group: by all ranks of the job. (A shrink is a call of those that stay, a create_group of those in it.)
bool is_made_by_all_members(OpKind kind) {
  return kind == OpKind::kNewGroup || kind == OpKind::kSplit || kind == OpKind::kSplitType || kind == OpKind::kDup || kind == OpKind::kCreate;
}

void explain_order(const Describer& describe, const CycleReader& reader, const ReplayResult& replay, const Cause& cause,
                   bool recorded_only, Finding& finding) {
  finding.finding_class = reader.all_messages() ? "message_order" : "order_across_communicators";
  constexpr std::size_t kMostTold = 3;  // the others are in the table of waits
  std::string text;
  std::size_t told = 0;
  for (const std::size_t s : cause.stuck) {
    const BlockedOperation* blocked = reader.blocked_at(s);
    if (blocked == nullptr) continue;
    const StuckGate& stuck = replay.stuck[s];
    std::vector<std::int32_t> missing;
    for (const std::int32_t rank : missing_ranks(describe.job(), stuck)) {
      if (contains(cause.ranks, rank)) missing.push_back(rank);
    }
    if (missing.empty()) continue;
    if (told++ == kMostTold) {
      text += "; and so on";
      break;
    }
    if (!text.empty()) text += "; ";
    const Operation& operation = describe.operation(blocked->program, blocked->operation);
    const OpKind kind = operation.kind;
    // Lines of Python are short and few; those of C++ stand in the table of waits.
    const std::string from = torch_site_text(describe.job().site(operation.site).frames, op_name(kind));
    text += fmt::format("{}{}{} cannot complete before {} come{} to {}", describe.call(blocked->program, blocked->operation),
                        from.empty() ? "" : " from ", from, ranks_text(missing), missing.size() == 1 ? "s" : "",
                        is_send(kind) ? "the recv" : is_receive(kind) ? "the send" : "it");
  }
  finding.explanation = text;
  if (reader.all_messages()) {
    finding.fix = "issue the messages that cross in one batch (group), or let one side receive first: even ranks send first, odd "
                  "ranks receive first";
    return;
  }
  if (recorded_only && reader.same_line_on_other_groups()) {
    // Nobody can tell from here which: a loop over groups that ranks walk differently, or one rank's wrong choice of group.
    finding.verdict = Verdict::kOrder;
    finding.explanation += "; the same line makes these calls: either ranks walk over the groups in different orders, or some use "
                           "the wrong group there";
  } else {
    finding.explanation += recorded_only ? "; either the ranks make these calls in different orders, or one of them left a call out"
                                         : "; the ranks make these calls in different orders";
  }
  finding.fix = reader.on_one_communicator() ? "issue the messages and collectives of the group in one order on all ranks that share them"
                                             : "issue calls on different groups in one order on all ranks that share them";
  const auto makes_group = [&](std::size_t s) {
    const BlockedOperation* blocked = reader.blocked_at(s);
    if (blocked == nullptr || replay.stuck[s].never.empty()) return false;
    return is_made_by_all_members(describe.operation(blocked->program, blocked->operation).kind);
  };
  const auto group = std::ranges::find_if(cause.stuck, makes_group);
  if (recorded_only && group != cause.stuck.end()) {
    const StuckGate& stuck = replay.stuck[*group];
    std::vector<std::int32_t> callers;
    for (const ProgramIndex program : stuck.arrived) callers.push_back(describe.job().program(program).rank);
    std::ranges::sort(callers);
    finding.finding_class = "creation_not_joined";
    const BlockedOperation& made = *reader.blocked_at(*group);
    const Operation& creation = describe.operation(made.program, made.operation);
    finding.explanation = fmt::format("{} {} in {}, which {} {} not called; ", ranks_text(callers), callers.size() == 1 ? "is" : "are",
                                      op_name(creation.kind), ranks_text(stuck.never), stuck.never.size() == 1 ? "has" : "have") +
                          finding.explanation;
    finding.fix = creation.kind == OpKind::kNewGroup
                      ? "call new_group on every rank, members of the group or not, and in one order with the other calls that all ranks make"
                      : fmt::format("call {} on every rank of {}, and in one order with their other calls", op_name(creation.kind),
                                    describe.communicator(creation.comm));
  }
}

void set_divergent_party(const CycleReader& reader, const Cause& cause, Finding& finding) {
  const auto parties = reader.parties();
  finding.divergent_ranks = cause.ranks;
  finding.divergent_meaning = DivergentMeaning::kNoMajority;
  if (parties.size() < 2 || 2 * parties[0].size() <= cause.ranks.size()) return;
  finding.divergent_ranks.clear();
  for (std::size_t party = 1; party < parties.size(); ++party) {
    finding.divergent_ranks.insert(finding.divergent_ranks.end(), parties[party].begin(), parties[party].end());
  }
  std::ranges::sort(finding.divergent_ranks);
  finding.divergent_meaning = DivergentMeaning::kMinority;
}

}  // namespace

Finding cycle_finding(const Describer& describe, const ReplayResult& replay, const Cause& cause) {
  const CycleReader reader(describe, replay, cause);
  Finding finding{.verdict = Verdict::kDeadlock, .severity = Severity::kCertain};
  finding.title = cause.ranks.size() == 1 ? fmt::format("{} waits for itself", ranks_text(cause.ranks))
                                          : fmt::format("{} wait for each other", ranks_text(cause.ranks));
  const std::vector<CycleCall> never = reader.calls_never_made();
  const std::optional<Departure> departure = reader.departure(never);
  const std::optional<WrongPeer> wrong_peer = departure ? std::nullopt : find_wrong_peer(describe, replay, cause);
  const CycleCall* telling = departure || wrong_peer ? nullptr : most_telling(describe, never);
  if (departure) {
    const StuckGate& stuck = *reader.stuck_of(departure->call.program);
    std::vector<std::int32_t> callers;
    for (const ProgramIndex program : stuck.arrived) callers.push_back(describe.job().program(program).rank);
    explain_departure(describe, *departure, callers, missing_ranks(describe.job(), stuck), finding);
  } else if (telling != nullptr) {
    explain_count_difference(describe, {telling->caller, telling->absentee, telling->operation}, finding);
  } else if (!wrong_peer) {
    explain_order(describe, reader, replay, cause, !never.empty(), finding);
  }
  // Without a telling call, the rendezvous at which most ranks of the cycle stand: the call that the others did not make.
  const BlockedOperation* shown = reader.blocked_at(cause.stuck.front());
  const auto parties = reader.parties();
  for (const std::size_t s : cause.stuck) {
    const BlockedOperation* blocked = reader.blocked_at(s);
    if (blocked != nullptr && !parties.empty() && contains(parties.front(), describe.job().program(blocked->program).rank)) {
      shown = blocked;
      break;
    }
  }
  const StandingCall position = departure            ? departure->call
                                : wrong_peer         ? StandingCall{wrong_peer->program, wrong_peer->operation}
                                : telling != nullptr ? StandingCall{telling->caller, telling->operation}
                                                     : StandingCall{shown->program, shown->operation};
  finding.position = describe.position(position.program, position.operation);
  if (const CommIndex comm = describe.operation(position.program, position.operation).comm; comm != kNoComm) {
    finding.communicator = describe.communicator_view(comm);
  }
  set_divergent_party(reader, cause, finding);
  if (wrong_peer) explain_wrong_peer(describe, *wrong_peer, finding);
  // Counts of the other communicators of the cycle, where they differ among its ranks.
  std::set<CommIndex> told;
  for (const std::size_t s : cause.stuck) {
    const GateIndex gate = replay.stuck[s].gate;
    if (gate == kNoGate) continue;
    const CommIndex comm = owner_of(describe.match(), gate).comm;
    if (comm == kNoComm || !told.insert(comm).second || told.size() > 4) continue;
    CallCounts counts = communicator_counts(describe, comm);
    if (std::ranges::any_of(finding.counts, [&](const CallCounts& known) {
          return known.communicator == counts.communicator && known.members == counts.members;
        })) {
      continue;
    }
    finding.counts.push_back(std::move(counts));
  }
  add_wait_for(describe, replay, cause, finding);
  for (const WaitFor& wait : finding.wait_for) {
    if (finding.evidence.size() >= 8) break;
    const Evidence evidence{wait.operation.file, wait.operation.line};
    if (!evidence.file.empty() && std::ranges::find(finding.evidence, evidence) == finding.evidence.end()) {
      finding.evidence.push_back(evidence);
    }
  }
  return finding;
}

}  // namespace lockstep
