// See the header.
#include "diagnose/grow_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "base/rank_ranges.h"
#include "diagnose/difference.h"

namespace lockstep {
namespace {

struct Growing {
  std::vector<std::pair<ProgramIndex, std::uint32_t>> calls{};  ///< of the members so far, by rank
  std::uint64_t size = 0;                                       ///< that is to be
};

/// The size that a grow states, where the rank stands in it.
std::optional<std::uint64_t> size_of_held_grow(const Job& job, const Operation& operation) {
  const bool grows = operation.kind == OpKind::kGrow || (operation.kind == OpKind::kOpaque && job.extra(operation).native_name == "ncclCommGrow");
  if (!grows || operation.state != OpState::kEntered || !takes_effect(operation)) return std::nullopt;
  const std::vector<std::uint64_t>& counts = job.extra(operation).counts;
  return counts.size() == 1 ? std::optional(counts.front()) : std::nullopt;
}

/// Those that all members wait in, by communicator, and where those stand that come to one: they are on no communicator yet.
struct HeldGrows {
  std::map<CommIndex, Growing> growing{};
  std::map<std::uint64_t, std::vector<std::int32_t>> coming{};  ///< ranks, by the size that they state
};

HeldGrows find_held_grows(const Job& job) {
  HeldGrows held;
  for (std::uint32_t p = 0; p < job.programs().size(); ++p) {
    const Program& program = job.programs()[p];
    for (std::uint32_t i = 0; i < program.placed; ++i) {
      const Operation& operation = program.operations[i];
      if (operation.extra == 0) continue;
      const auto size = size_of_held_grow(job, operation);
      if (!size) continue;
      if (operation.comm == kNoComm) {
        held.coming[*size].push_back(program.rank);
        continue;
      }
      Growing& growing = held.growing[operation.comm];
      growing.calls.emplace_back(ProgramIndex{p}, i);
      growing.size = growing.calls.size() == 1 || growing.size == *size ? *size : 0;  // they differ: another matter
    }
  }
  std::erase_if(held.growing, [&](const auto& entry) {
    const std::size_t members = job.communicator(entry.first).members.size();
    return entry.second.calls.size() != members || entry.second.size <= members;
  });
  return held;
}

/// Ranks of the job that could be meant: no members so far, and not there.
std::vector<std::int32_t> who_may_come(const Job& job, CommIndex comm, const std::vector<std::int32_t>& there) {
  std::vector<std::int32_t> ranks;
  const std::vector<std::int32_t>& members = job.communicator(comm).members;
  for (const Program& program : job.programs()) {
    const auto is_among = [&](const std::vector<std::int32_t>& some) { return std::ranges::find(some, program.rank) != some.end(); };
    if (!is_among(members) && !is_among(there)) ranks.push_back(program.rank);
  }
  std::ranges::sort(ranks);
  return ranks;
}

void decide(const Job& job, const std::vector<std::int32_t>& ranks, std::size_t missing, bool stalled, Finding& finding) {
  const auto has_whole_record = [&](std::int32_t rank) {
    const Program& program = job.program(job.program_of_rank(rank));
    return !program.head_missing && !program.tail_missing;
  };
  const auto is_gone = [&](std::int32_t rank) { return calls_no_more(job, job.program(job.program_of_rank(rank))); };
  const bool seen = ranks.size() >= missing && std::ranges::all_of(ranks, has_whole_record);
  const bool gone = std::ranges::all_of(ranks, is_gone);
  finding.verdict = seen && (gone || stalled) ? Verdict::kImbalance : Verdict::kInsufficient;
  finding.severity = !seen || (!gone && !stalled) ? Severity::kNote : gone ? Severity::kCertain : Severity::kContractViolation;
  if (ranks.size() < missing) {
    finding.explanation += "; no record says whether those that are to come were started, or have called";
    finding.fix = "collect the records of the ranks that are to come; " + finding.fix;
  }
  if (ranks.size() != missing) return;
  finding.divergent_ranks = ranks;
  finding.divergent_meaning = DivergentMeaning::kAbsent;
  std::vector<std::int32_t> killed;
  std::ranges::copy_if(ranks, std::back_inserter(killed), [&](std::int32_t rank) { return job.end_of_rank(rank).kind == EndKind::kKilled; });
  if (killed.empty()) return;
  finding.verdict = Verdict::kOtherCause;
  finding.finding_class = "peer_crashed";
  finding.severity = Severity::kCertain;
  finding.divergent_ranks = killed;
  finding.explanation += fmt::format("; {} {} killed", ranks_text(killed), killed.size() == 1 ? "was" : "were");
  finding.fix = "find out what killed the process: the kernel log (out of memory, machine check), the scheduler, the core dump";
}

}  // namespace

std::vector<Draft> grow_drafts(const Describer& describe, bool stalled) {
  std::vector<Draft> drafts;
  const Job& job = describe.job();
  const HeldGrows held = find_held_grows(job);
  for (const auto& [comm, growing] : held.growing) {
    const std::size_t members = growing.calls.size();
    const bool alone = std::ranges::count_if(held.growing, [&](const auto& other) { return other.second.size == growing.size; }) == 1;
    const auto coming = held.coming.find(growing.size);
    if (!alone && coming != held.coming.end()) continue;  // to which of them they come is not known
    const std::vector<std::int32_t> there = coming == held.coming.end() ? std::vector<std::int32_t>{} : coming->second;
    if (members + there.size() >= growing.size) continue;  // everyone is there: whatever it waits for, it is no rank
    const std::size_t missing = growing.size - members - there.size();
    const auto& [program, call] = growing.calls.front();
    Draft draft{.finding = {.finding_class = "creation_not_joined"}, .comm = comm, .stalls = true, .first_call = call};
    Finding& finding = draft.finding;
    finding.communicator = describe.communicator_view(comm);
    finding.position = describe.position(program, call);
    const std::vector<std::int32_t> ranks = who_may_come(job, comm, there);
    std::vector<std::int32_t> waiting = there;
    for (const auto& [waits, at] : growing.calls) waiting.push_back(job.program(waits).rank);
    std::ranges::sort(waiting);
    finding.title = fmt::format("{} stand{} in the grow of {} to {} ranks, and {} of those that are to come {} not joined", ranks_text(waiting),
                                waiting.size() == 1 ? "s" : "", describe.communicator(comm), growing.size, missing, missing == 1 ? "has" : "have");
    finding.explanation = fmt::format("{}{} makes a communicator of {} ranks out of {}; it holds the host until all are there{}{}",
                                      describe.call(program, call), describe.from_site(describe.operation(program, call)), growing.size, members,
                                      ranks.size() == missing ? ", and does not come back before a call of " : "",
                                      ranks.size() == missing ? ranks_text(ranks) : "");
    finding.fix = "call the grow on every rank that is to come, with the id and the size that the members so far pass; or state the size that there is";
    for (const auto& [waits, at] : growing.calls) {
      finding.wait_for.push_back({.rank = job.program(waits).rank, .operation = describe.view(waits, at),
                                  .waits_for = ranks.size() == missing ? ranks : std::vector<std::int32_t>{}});
    }
    finding.operations = {describe.view(program, call)};
    finding.evidence = {describe.evidence(program, call)};
    decide(job, ranks, missing, stalled, finding);
    drafts.push_back(std::move(draft));
  }
  return drafts;
}

}  // namespace lockstep
