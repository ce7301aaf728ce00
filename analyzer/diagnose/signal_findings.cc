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

/// Signals to a rank: of one peer, or of all members.
struct Tally {
  std::uint64_t sent = 0;
  std::uint64_t waited = 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> waits{};  ///< operation, and the signals that it and those before ask for

  void wait_for(std::uint64_t number, std::uint32_t at) {
    if (number > Count::kMaxNumber - waited) return;
    waited += number;
    waits.emplace_back(at, waited);
  }
};

struct Signals {
  Tally all{};
  std::map<std::int32_t, Tally> by_peer{};  ///< what is waited for here is a part: a wait with several descriptors names no peer
  ProgramIndex program = kNoProgram;        ///< the one that waits
  bool decided = true;                      ///< no number is missing, and nothing is made by a graph
};
using Totals = std::map<std::pair<CommIndex, std::int32_t>, Signals>;  // by communicator and waiting rank

void add(const Operation& operation, ProgramIndex program, std::int32_t rank, std::uint32_t at, Totals& totals) {
  const bool waits = operation.kind == OpKind::kWaitSignal;
  Signals& signals = totals[{operation.comm, waits ? rank : operation.peer}];
  const bool known = (operation.flags & (kOpCaptured | kOpReplayed)) == 0 && (!waits || operation.count.is_number());
  signals.decided = signals.decided && known;
  if (!known || !takes_effect(operation)) return;
  if (!waits) {
    ++signals.all.sent;
    ++signals.by_peer[rank].sent;
    return;
  }
  signals.program = program;
  signals.all.wait_for(operation.count.number(), at);
  if (operation.peer >= 0) signals.by_peer[operation.peer].wait_for(operation.count.number(), at);
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

bool is_whole(const Program& program) { return !program.head_missing && !program.tail_missing; }

/// The record of `member` is whole, and it sends no further signal.
bool sends_no_more(const Job& job, std::int32_t member) {
  const ProgramIndex program = job.program_of_rank(member);
  return program != kNoProgram && is_whole(job.program(program)) && calls_no_more(job, job.program(program));
}

/// Nobody can send another signal to the rank.
bool is_final(const Job& job, CommIndex comm, std::int32_t rank) {
  return std::ranges::all_of(job.communicator(comm).members, [&](std::int32_t member) {
    return member == rank || sends_no_more(job, member);
  });
}

std::string are_sent(std::uint64_t number) { return fmt::format("{} {} sent", number, number == 1 ? "is" : "are"); }

std::string signals_text(std::uint64_t number) { return fmt::format("{} signal{}", number, number == 1 ? "" : "s"); }

/// What the first wait that cannot be satisfied has to show; the caller adds ranks and words.
Draft draft_of(const Describer& describe, CommIndex comm, const Signals& signals, const Tally& tally) {
  const auto missed = std::ranges::find_if(tally.waits, [&](const auto& wait) { return wait.second > tally.sent; });
  Draft draft{.finding = {.verdict = Verdict::kImbalance, .finding_class = "message_unmatched", .severity = Severity::kCertain},
              .comm = comm, .stalls = true, .first_call = missed->first};
  Finding& finding = draft.finding;
  finding.communicator = describe.communicator_view(comm);
  finding.position = describe.position(signals.program, missed->first);
  finding.operations = {describe.view(signals.program, missed->first)};
  finding.evidence = {describe.evidence(signals.program, missed->first)};
  finding.divergent_meaning = DivergentMeaning::kNoMajority;
  return draft;
}

std::string never_satisfied(const Describer& describe, const Draft& draft, const Signals& signals) {
  return fmt::format("so {}{} can never be satisfied", op_name(OpKind::kWaitSignal),
                     describe.from_site(describe.operation(signals.program, draft.first_call)));
}

Draft too_few(const Describer& describe, CommIndex comm, std::int32_t rank, const Signals& signals) {
  Draft draft = draft_of(describe, comm, signals, signals.all);
  Finding& finding = draft.finding;
  const auto& members = describe.job().communicator(comm).members;
  finding.divergent_ranks = members.size() == 2 ? members : std::vector<std::int32_t>{rank};
  std::ranges::sort(finding.divergent_ranks);
  finding.title = fmt::format("rank {} waits for {} on {}, of which {}", rank, signals_text(signals.all.waited), describe.communicator(comm),
                              are_sent(signals.all.sent));
  finding.explanation = fmt::format("{}; all members but it have ended, {}", finding.title, never_satisfied(describe, draft, signals));
  finding.fix = fmt::format("let the peers signal as often as rank {} waits: both sides must decide from the same facts", rank);
  return draft;
}

/// Waits that name one peer ask for more than it sends, whatever the others send.
Draft too_few_of_peer(const Describer& describe, CommIndex comm, std::int32_t rank, std::int32_t peer, const Signals& signals) {
  const Tally& tally = signals.by_peer.at(peer);
  Draft draft = draft_of(describe, comm, signals, tally);
  Finding& finding = draft.finding;
  finding.divergent_ranks = {std::min(rank, peer), std::max(rank, peer)};
  if (rank == peer) finding.divergent_ranks = {rank};
  finding.title = fmt::format("rank {} waits for {} of rank {} on {}, of which {}", rank, signals_text(tally.waited), peer,
                              describe.communicator(comm), are_sent(tally.sent));
  std::vector<std::int32_t> others;
  for (const auto& [other, of_other] : signals.by_peer) {
    if (of_other.sent > of_other.waited) others.push_back(other);
  }
  finding.explanation = fmt::format("{}; rank {} makes no further call, {}", finding.title, peer, never_satisfied(describe, draft, signals));
  if (!others.empty()) {
    finding.explanation += fmt::format("; {} signal{} it more often than it waits for: either the wait names the wrong peer, or the signal "
                                       "goes to the wrong rank", ranks_text(others), others.size() == 1 ? "s" : "");
  }
  finding.fix = fmt::format("let rank {} signal as often as rank {} waits for it: both sides must decide from the same facts", peer, rank);
  return draft;
}

}  // namespace

std::vector<Draft> signal_drafts(const Describer& describe) {
  std::vector<Draft> drafts;
  if (describe.match().opaque_calls == 0) return drafts;
  const Job& job = describe.job();
  const Totals totals = count_signals(describe);
  for (const auto& [where, signals] : totals) {
    const auto& [comm, rank] = where;
    const bool to_unknown = totals.contains({comm, kNoPeer});  // a signal whose receiver the record does not give
    if (to_unknown || !signals.decided || signals.program == kNoProgram || !is_whole(job.program(signals.program))) continue;
    bool of_peer = false;
    for (const auto& [peer, tally] : signals.by_peer) {
      if (tally.waited <= tally.sent || job.communicator(comm).members.size() == 2 || !sends_no_more(job, peer)) continue;
      drafts.push_back(too_few_of_peer(describe, comm, rank, peer, signals));
      of_peer = true;
    }
    if (!of_peer && signals.all.waited > signals.all.sent && is_final(job, comm, rank)) {
      drafts.push_back(too_few(describe, comm, rank, signals));
    }
  }
  return drafts;
}

}  // namespace lockstep
