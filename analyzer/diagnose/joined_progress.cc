// See the header. Status lines come when a watchdog has waited for its whole timeout: what a rank had not enqueued by then it does
// not enqueue any more.
#include "diagnose/joined_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/rank_ranges.h"
#include "diagnose/contradictions.h"

namespace lockstep {
namespace {

/// By rank, the line that names the furthest call on the communicator.
std::map<std::int32_t, const ReportedEvent*> furthest_lines(const Job& job, const ReportedEvidence& reported, CommIndex comm) {
  std::map<std::int32_t, const ReportedEvent*> lines;
  for (const ReportedEvent& event : reported.events) {
    if (event.kind != ReportedKind::kProgress || !event.rank || event.group.empty() || event.enqueued.value_or(-1) < 0) continue;
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
  const bool counts_messages = std::ranges::any_of(job.programs(), [&](const Program& program) { return recorded_progress(program, comm).has_messages; });
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
    words += fmt::format("{}rank {} had enqueued call {} and completed call {}", words.empty() ? "" : ", ", rank, *said.enqueued, said.completed.value_or(-1));
  }
  const std::string who = ranks_text(finding.divergent_ranks);
  finding.explanation += fmt::format("; the log says: {}; the others wait in call {}", words, number);
  if (none_came) {
    finding.verdict = Verdict::kImbalance;
    finding.finding_class = "never_arrived";
    finding.severity = Severity::kCertain;
    finding.title = fmt::format("{} never enqueued {} {} on {}, in which the others wait", who, finding.position->op, number, finding.communicator->name);
    finding.divergent_meaning = DivergentMeaning::kMissing;
    finding.fix = fmt::format("look for the branch that {} took: a stack of each (py-spy dump)", who);
  } else if (all_came) {
    finding.fix = fmt::format("{} had enqueued the call too: nobody lacks it. Collect the record of {} for what differs in it, or look at devices and transport", who, who);
  }
}

}  // namespace lockstep
