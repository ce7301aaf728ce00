// See the header.
#include "diagnose/signal_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/rank_ranges.h"
#include "diagnose/difference.h"

namespace lockstep {
namespace {

struct Signals {
  std::uint64_t sent = 0;    ///< to the rank, by all members
  std::uint64_t waited = 0;  ///< by the rank
  ProgramIndex program = kNoProgram;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> waits{};  ///< operation, and the signals that it and those before ask for
  bool decided = true;       ///< no number is missing, and nothing is made by a graph
};
using Totals = std::map<std::pair<CommIndex, std::int32_t>, Signals>;  // by communicator and waiting rank

void add(const Operation& operation, ProgramIndex program, std::int32_t rank, std::uint32_t at, Totals& totals) {
  const bool waits = operation.kind == OpKind::kWaitSignal;
  Signals& signals = totals[{operation.comm, waits ? rank : operation.peer}];
  const bool known = (operation.flags & (kOpCaptured | kOpReplayed)) == 0 && (!waits || operation.count.is_number());
  signals.decided = signals.decided && known;
  if (!known || !takes_effect(operation)) return;
  if (!waits) {
    ++signals.sent;
    return;
  }
  if (operation.count.number() > Count::kMaxNumber - signals.waited) return;
  signals.waited += operation.count.number();
  signals.program = program;
  signals.waits.emplace_back(at, signals.waited);
}

Totals count_signals(const Describer& describe) {
  Totals totals;
  const Job& job = describe.job();
  for (std::uint32_t p = 0; p < job.programs().size(); ++p) {
    const auto operations = job.programs()[p].placed_operations();
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      const Operation& operation = operations[i];
      const bool is_signal = operation.kind == OpKind::kPutSignal || operation.kind == OpKind::kSignal || operation.kind == OpKind::kWaitSignal;
      if (is_signal && operation.comm != kNoComm) add(operation, ProgramIndex{p}, job.programs()[p].rank, i, totals);
    }
  }
  return totals;
}

/// Nobody can send another signal to the rank.
bool is_final(const Job& job, CommIndex comm, std::int32_t rank) {
  return std::ranges::all_of(job.communicator(comm).members, [&](std::int32_t member) {
    const ProgramIndex program = job.program_of_rank(member);
    if (program == kNoProgram || job.program(program).head_missing || job.program(program).tail_missing) return false;
    return member == rank || calls_no_more(job, job.program(program));
  });
}

Draft draft_of(const Describer& describe, CommIndex comm, std::int32_t rank, const Signals& signals) {
  const auto missed = std::ranges::find_if(signals.waits, [&](const auto& wait) { return wait.second > signals.sent; });
  Draft draft{.finding = {.verdict = Verdict::kImbalance, .finding_class = "message_unmatched", .severity = Severity::kCertain},
              .comm = comm, .stalls = true, .first_call = missed->first};
  Finding& finding = draft.finding;
  finding.communicator = describe.communicator_view(comm);
  finding.position = describe.position(signals.program, missed->first);
  finding.operations = {describe.view(signals.program, missed->first)};
  finding.evidence = {describe.evidence(signals.program, missed->first)};
  const auto& members = describe.job().communicator(comm).members;
  finding.divergent_ranks = members.size() == 2 ? members : std::vector<std::int32_t>{rank};
  std::ranges::sort(finding.divergent_ranks);
  finding.divergent_meaning = DivergentMeaning::kNoMajority;
  finding.title = fmt::format("rank {} waits for {} signals on {}, of which {} {} sent", rank, signals.waited, describe.communicator(comm),
                              signals.sent, signals.sent == 1 ? "is" : "are");
  finding.explanation = fmt::format("{}; all members but it have ended, so {}{} can never be satisfied", finding.title,
                                    op_name(OpKind::kWaitSignal),
                                    describe.from_site(describe.operation(signals.program, missed->first)));
  finding.fix = fmt::format("let the peers signal as often as rank {} waits: both sides must decide from the same facts", rank);
  return draft;
}

}  // namespace

std::vector<Draft> signal_drafts(const Describer& describe) {
  std::vector<Draft> drafts;
  if (describe.match().opaque_calls == 0) return drafts;
  const Totals totals = count_signals(describe);
  for (const auto& [where, signals] : totals) {
    const auto& [comm, rank] = where;
    const bool to_unknown = totals.contains({comm, kNoPeer});  // a signal whose receiver the record does not give
    if (to_unknown || !signals.decided || signals.waited <= signals.sent || !is_final(describe.job(), comm, rank)) continue;
    drafts.push_back(draft_of(describe, comm, rank, signals));
  }
  return drafts;
}

}  // namespace lockstep
