// See the header. Status lines come when a watchdog has waited for its whole timeout: what a rank had not enqueued by
// then it does not enqueue any more.
#include "diagnose/joined_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/rank_ranges.h"
#include "diagnose/contradictions.h"
#include "diagnose/reported_view.h"

namespace lockstep {
namespace {

/// By rank, the line that names the furthest call on the communicator.
std::map<std::int32_t, const ReportedEvent*> furthest_lines(const Job& job, const ReportedEvidence& reported,
                                                            CommIndex comm) {
  std::map<std::int32_t, const ReportedEvent*> lines;
  for (const ReportedEvent& event : reported.events) {
    if (event.kind != ReportedKind::kProgress || !event.rank || event.group.empty() || event.enqueued.value_or(-1) < 0)
      continue;
    if (communicator_of_line(job, event.group, *event.rank) != comm) continue;
    const ReportedEvent*& known = lines[*event.rank];
    if (known == nullptr || *known->enqueued <= *event.enqueued) known = &event;
  }
  return lines;
}

}  // namespace

void join_reported_progress(const Job& job, const ReportedEvidence& reported, Finding& finding) {
  if (!finding.position || !finding.communicator || finding.divergent_ranks.empty()) return;
  const auto of_finding = std::ranges::find(job.communicators(), finding.communicator->id, &Communicator::id);
  if (of_finding == job.communicators().end()) return;
  const CommIndex comm{static_cast<std::uint32_t>(of_finding - job.communicators().begin())};
  const bool counts_messages = std::ranges::any_of(
      job.programs(), [&](const Program& program) { return recorded_progress(program, comm).has_messages; });
  if (counts_messages) return;
  const auto lines = furthest_lines(job, reported, comm);
  const std::int64_t number = finding.position->native_seq.value_or(std::int64_t{finding.position->seq} + 1);
  std::string words;
  bool none_came = true, all_came = true;
  for (const std::int32_t rank : finding.divergent_ranks) {
    const auto line = lines.find(rank);
    if (line == lines.end()) return;
    const ReportedEvent& said = *line->second;
    none_came = none_came && *said.enqueued < number && said.completed.value_or(-1) == *said.enqueued;
    all_came = all_came && *said.enqueued >= number;
    finding.evidence.push_back({reported.files[said.file], said.line});
    words += fmt::format("{}rank {} had enqueued call {} and completed call {}", words.empty() ? "" : ", ", rank,
                         *said.enqueued, said.completed.value_or(-1));
  }
  const std::string who = ranks_text(finding.divergent_ranks);
  const std::string said = fmt::format("the log says: {}; the others wait in call {}", words, number);
  // Where the lines decide, what could not be told without them is not worth a word.
  finding.explanation = none_came || all_came ? said : finding.explanation + "; " + said;
  if (none_came) {
    finding.verdict = Verdict::kImbalance;
    finding.finding_class = "never_arrived";
    finding.severity = Severity::kCertain;
    finding.title = fmt::format("{} never enqueued {} {} on {}, in which the others wait", who, finding.position->op,
                                number, finding.communicator->name);
    finding.divergent_meaning = DivergentMeaning::kMissing;
    finding.fix = fmt::format("look for the branch that {} took: {} (py-spy dump)", who,
                              finding.divergent_ranks.size() == 1 ? "a stack of it" : "a stack of each");
  } else if (all_came) {
    finding.fix = fmt::format(
        "{} had enqueued the call too: nobody lacks it. Collect the record of {} for what differs in it, or look at "
        "devices and transport",
        who, who);
  }
}

void tell_stacks(const ReportedEvidence& reported, Finding& finding) {
  const bool about_absence = finding.divergent_meaning == DivergentMeaning::kAbsent ||
                             finding.divergent_meaning == DivergentMeaning::kMissing ||
                             finding.divergent_meaning == DivergentMeaning::kBehind;
  constexpr std::size_t kMostRanks = 8;
  if (!about_absence || finding.divergent_ranks.empty() || finding.divergent_ranks.size() > kMostRanks) return;
  bool all_work = true;
  for (const std::int32_t rank : finding.divergent_ranks) {
    const auto stack = std::ranges::find_if(reported.events, [&](const ReportedEvent& event) {
      const bool is_stack =
          event.kind == ReportedKind::kStack || (event.kind == ReportedKind::kEvent && event.op == "stack");
      return is_stack && event.rank == rank;
    });
    all_work = all_work && stack != reported.events.end() && stack->finding_class == "slow_peer";
    if (stack == reported.events.end()) continue;
    finding.explanation += fmt::format("; the stack of rank {} stands in {}", rank, stack_text(*stack));
    const Evidence place{reported.files[stack->file], stack->line};
    if (std::ranges::find(finding.evidence, place) == finding.evidence.end()) finding.evidence.push_back(place);
  }
  // It did not come because it is busy with something legal: no call is missing in the program.
  if (!all_work || finding.finding_class != "never_arrived") return;
  finding.verdict = Verdict::kOtherCause;
  finding.finding_class = "slow_peer";
  finding.divergent_meaning = DivergentMeaning::kBehind;
  finding.fix =
      "give the timeout of the group more than this work takes, or let all ranks wait for it in a barrier with a long "
      "timeout; a second stack "
      "some minutes later shows whether it moves";
}

}  // namespace lockstep
