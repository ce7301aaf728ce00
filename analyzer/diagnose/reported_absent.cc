// What a coordinator says: Horovod's stalled tensors, monitored barriers, torch's desync report, torch's analyzer of dumps.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/rank_ranges.h"
#include "diagnose/reported_view.h"

namespace lockstep {
namespace {

using Event = ReportedEvent;
using ReadyEvents = std::map<std::vector<std::int32_t>, ReportedView::Events>;

constexpr std::string_view kSameTensors = "let all ranks submit the same tensors in each step: look for the branch that some take";

/// Horovod up to 0.12: tensors that are ready on other ranks each.
void add_branches(ReportedView& view, const ReportedView::Events& events, const ReadyEvents& ready, const std::string& words) {
  std::set<std::int32_t> all;
  const std::vector<std::int32_t>* largest = nullptr;
  for (const auto& [ranks, unused] : ready) {
    all.insert(ranks.begin(), ranks.end());
    if (largest == nullptr || ranks.size() > largest->size()) largest = &ranks;
  }
  Draft& draft = view.add(Verdict::kMismatch, "kind_differs", Severity::kCertain, fmt::format("ranks submit different tensors: {}", words), std::string(kSameTensors));
  draft.finding.explanation = draft.finding.title;
  for (const std::int32_t rank : all) {
    if (std::ranges::find(*largest, rank) == largest->end()) draft.finding.divergent_ranks.push_back(rank);
  }
  draft.finding.divergent_meaning = DivergentMeaning::kMinority;
  view.support(draft.finding, events);
}

}  // namespace

void add_reported_absence(ReportedView& view) {
  const auto& events = view.of(ReportedKind::kAbsent);
  if (events.empty()) return;
  std::set<std::int32_t> absent;
  ReadyEvents ready;
  std::string words;
  std::set<std::string> told;
  constexpr std::size_t kMostTold = 6;
  for (const Event* event : events) {
    const bool is_ready = event->finding_class == "ready";
    if (is_ready) ready[event->ranks].push_back(event);
    else absent.insert(event->ranks.begin(), event->ranks.end());
    const std::string text = fmt::format("{} {}: {}", event->op, is_ready ? "is ready on" : "waits for", ranks_text(event->ranks));
    if (told.size() < kMostTold && told.insert(text).second) words += (words.empty() ? "" : "; ") + text;
  }
  if (ready.size() > 1) return add_branches(view, events, ready, words);
  // Ranks are numbered without gaps: those below the largest that are not ready are missing.
  if (ready.size() == 1 && absent.empty()) {
    const std::vector<std::int32_t>& known = ready.begin()->first;
    constexpr std::int32_t kMostMissing = 65536;
    for (std::int32_t rank = 0; rank < std::min(known.back(), kMostMissing); ++rank) {
      if (!std::ranges::binary_search(known, rank)) absent.insert(rank);
    }
  }
  // By rank, the tensors that it lacks: ranks that lack other tensors took other branches.
  std::map<std::string, std::set<std::int32_t>> lacking;
  for (const Event* event : events) lacking[event->op].insert(event->ranks.begin(), event->ranks.end());
  const bool complementary = lacking.size() > 1 && absent.size() > 1 && std::ranges::all_of(lacking, [&](const auto& entry) { return entry.second.size() < absent.size(); });
  const std::vector<std::int32_t> ranks(absent.begin(), absent.end());
  if (complementary) {
    Draft& draft = view.add(Verdict::kMismatch, "kind_differs", Severity::kCertain, fmt::format("{} submit different tensors: {}", ranks_text(ranks), words),
                            std::string(kSameTensors));
    draft.finding.explanation = draft.finding.title;
    draft.finding.divergent_ranks = ranks;
    draft.finding.divergent_meaning = DivergentMeaning::kNoMajority;
    view.support(draft.finding, events);
    return;
  }
  if (ranks.empty()) {
    Draft& draft = view.add(Verdict::kInsufficient, "evidence_missing", Severity::kNote, words, view.next_evidence());
    draft.finding.explanation = words + "; which ranks are missing depends on how many the job has";
    view.support(draft.finding, events);
    return;
  }
  Draft& draft = view.add(Verdict::kImbalance, "never_arrived", Severity::kCertain,
                          fmt::format("{} did not come to {}", ranks_text(ranks), events.front()->op),
                          fmt::format("look where {} {}: log and stack (py-spy dump)", ranks_text(ranks), ranks.size() == 1 ? "stands" : "stand"));
  draft.finding.explanation = fmt::format("the coordinator lists those that did not come: {}", words);
  view.add_standing(draft.finding);
  draft.finding.divergent_ranks = ranks;
  draft.finding.divergent_meaning = DivergentMeaning::kAbsent;
  view.support(draft.finding, events);
}

}  // namespace lockstep
