// Stacks that stand in different calls, and how many calls NCCL's RAS saw launched.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/rank_ranges.h"
#include "diagnose/reported_view.h"

namespace lockstep {

using Event = ReportedEvent;

void add_stack_differences(ReportedView& view) {
  std::map<std::int32_t, const Event*> by_rank;
  for (const Event* event : view.of(ReportedKind::kStack)) {
    if (event->rank) by_rank.try_emplace(*event->rank, event);
  }
  std::map<std::string, std::vector<std::int32_t>> parties;
  for (const auto& [rank, event] : by_rank) parties[plain_op(event->op)].push_back(rank);
  if (parties.size() < 2) return;
  ReportedView::Events events;
  std::vector<std::pair<std::string, std::vector<std::int32_t>>> places;
  for (const auto& [rank, event] : by_rank) {
    events.push_back(event);
    const std::string frame = stack_text(*event);
    const bool names_call = frame.find(event->op) < frame.find('(');
    const std::string place = names_call ? frame : fmt::format("{} ({})", event->op, frame);
    auto known = std::ranges::find(places, place, &std::pair<std::string, std::vector<std::int32_t>>::first);
    if (known == places.end()) known = places.insert(places.end(), {place, {}});
    known->second.push_back(rank);
  }
  // Those of few ranks first: they are what a reader looks for.
  std::ranges::stable_sort(places, {}, [](const auto& place) { return place.second.size(); });
  constexpr std::size_t kMostTold = 6;
  std::string words;
  for (std::size_t i = 0; i < std::min(places.size(), kMostTold); ++i) {
    const auto& [place, ranks] = places[i];
    words += fmt::format("{}{} {} in {}", i == 0 ? "" : "; ", ranks_text(ranks), ranks.size() == 1 ? "stands" : "stand", place);
  }
  Draft& draft = view.add(Verdict::kMismatch, "kind_differs", Severity::kCertain, fmt::format("the stacks stand in different calls: {}", words.substr(0, 400)),
                          "let all ranks of the group take the same branch before this call");
  draft.finding.explanation = fmt::format("{}; stacks do not name the group: if the calls are on different groups, their order is what differs", words);
  const auto largest = std::ranges::max_element(parties, {}, [](const auto& party) { return party.second.size(); });
  const bool majority = 2 * largest->second.size() > by_rank.size();
  for (const auto& party : parties) {
    if (majority && &party == &*largest) continue;
    draft.finding.divergent_ranks.insert(draft.finding.divergent_ranks.end(), party.second.begin(), party.second.end());
  }
  std::ranges::sort(draft.finding.divergent_ranks);
  draft.finding.divergent_meaning = majority ? DivergentMeaning::kMinority : DivergentMeaning::kNoMajority;
  view.support(draft.finding, events);
}

/// RAS counts launches per communicator and function: only those are comparable. One launch more or less is normal in a job that runs.
void add_launch_counts(ReportedView& view) {
  struct Counts {
    std::int64_t least = -1, most = -1;
    std::set<std::int32_t> ranks{};
    ReportedView::Events events{};
  };
  std::map<std::pair<std::string, std::string>, Counts> by_function;  // communicator and function
  for (const Event* event : view.of(ReportedKind::kCount)) {
    Counts& counts = by_function[{event->group, event->op}];
    counts.events.push_back(event);
    counts.ranks.insert(event->ranks.begin(), event->ranks.end());
    const bool none = event->text.find("not launched any") != std::string::npos;
    if (!event->seq && !none) continue;
    const std::int64_t launched = event->seq.value_or(0);
    counts.least = counts.least < 0 ? launched : std::min(counts.least, launched);
    counts.most = std::max(counts.most, launched);
  }
  const auto gap = [](const auto& entry) { return entry.second.most - entry.second.least; };
  const auto widest = std::ranges::max_element(by_function, {}, gap);
  if (widest == by_function.end() || gap(*widest) == 0) return;
  const auto& [function, counts] = *widest;
  std::string words;
  std::size_t told = 0;
  for (const Event* event : counts.events) {
    if (told++ < 8) words += (words.empty() ? "" : "; ") + event->text;
  }
  const bool far = gap(*widest) >= 2;
  Draft& draft = view.add(far ? Verdict::kImbalance : Verdict::kInsufficient, far ? "count_differs_by_local_state" : "unfinished_snapshot",
                          far ? Severity::kCertain : Severity::kNote,
                          fmt::format("ranks launched {} up to {} and up to {}", function.second, counts.least, counts.most),
                          far ? "compare the calls of the two sides from there on"
                              : "ask RAS again some seconds later (ncclras): if the numbers stand still, collect a stack of the ranks that are behind, which it does not list");
  draft.finding.explanation = words + (far ? "" : "; one call ahead is normal in a job that runs, and the ranks that are listed are the fewer, not the guilty");
  if (!function.first.empty()) draft.finding.explanation += fmt::format("; on communicator {}, by whose ranks RAS counts", function.first);
  if (far) {
    draft.finding.divergent_ranks.assign(counts.ranks.begin(), counts.ranks.end());
    draft.finding.divergent_meaning = DivergentMeaning::kMinority;
  }
  view.support(draft.finding, counts.events);
}

}  // namespace lockstep
