// Ranks that wait in one number with other calls, and calls that fingerprints show one by one.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/reported_view.h"

namespace lockstep {
namespace {

using Event = ReportedEvent;

/// The lines do not name the group: a small number alone may stand for calls of several.
constexpr std::int64_t kTellingNumber = 16;

void set_minority_of_waits(const ReportedView::Events& events, Finding& finding) {
  std::map<std::string, std::set<std::int32_t>> parties;
  for (const Event* event : events) parties[fmt::format("{}|{}", plain_op(event->op), event->elements_in.value_or(-1))].insert(*event->rank);
  const auto largest = std::ranges::max_element(parties, {}, [](const auto& party) { return party.second.size(); });
  std::size_t total = 0;
  for (const auto& [key, ranks] : parties) total += ranks.size();
  const bool majority = 2 * largest->second.size() > total;
  for (const auto& party : parties) {
    if (majority && &party == &*largest) continue;
    finding.divergent_ranks.insert(finding.divergent_ranks.end(), party.second.begin(), party.second.end());
  }
  std::ranges::sort(finding.divergent_ranks);
  finding.divergent_meaning = majority ? DivergentMeaning::kMinority : DivergentMeaning::kNoMajority;
}

}  // namespace

/// One number (of one group, or of groups that are not named) with other operations or sizes.
bool add_unequal_waits(ReportedView& view) {
  // Not every line of a work names its group: where only one is named, the others may be of it.
  std::set<std::string> groups;
  for (const Event& wait : view.waits()) {
    if (!wait.group.empty()) groups.insert(wait.group);
  }
  std::map<std::pair<std::string, std::int64_t>, ReportedView::Events> by_place;
  for (const Event& wait : view.waits()) {
    if (!wait.seq || !wait.rank || has_own_number(wait.op)) continue;
    by_place[{wait.group.empty() && groups.size() == 1 ? *groups.begin() : wait.group, *wait.seq}].push_back(&wait);
  }
  for (const auto& [at, events] : by_place) {
    std::set<std::int32_t> ranks;
    bool differ = false, ops_differ = false;
    const bool named = std::ranges::all_of(events, [](const Event* event) { return !event->group.empty(); });
    for (const Event* event : events) {
      ranks.insert(*event->rank);
      const Event& first = *events.front();
      const bool op = plain_op(event->op) != plain_op(first.op);
      const bool size = !op && !has_free_size(first.op) && event->elements_in && first.elements_in && *event->elements_in != *first.elements_in;
      // Another operation under one number, in groups that are not named: other groups may stand at an equal number by
      // chance, where it is small and few ranks are there.
      differ = differ || size || (op && (named || at.second >= kTellingNumber || events.size() > 2));
      ops_differ = ops_differ || op;
    }
    if (!differ || ranks.size() < 2) continue;
    const std::string words = standing_text(events, "waits in", "wait in", 8);
    Draft& draft = view.add(Verdict::kMismatch, ops_differ ? "kind_differs" : "size_differs", Severity::kCertain,
                            fmt::format("ranks wait in call {} with different arguments: {}", at.second, words.substr(0, 500)),
                            ops_differ ? "let every member of the group take the same branch before this call"
                                       : "agree on the size first (gather the sizes, or pad to the largest), and take the same branch on all ranks");
    draft.finding.explanation = draft.finding.title;
    if (!named) draft.finding.explanation += ops_differ ? "; not all lines name the process group, but the numbers agree" : "; the lines do not name the process group, but number and operation agree";
    set_minority_of_waits(events, draft.finding);
    view.support(draft.finding, events);
    return true;
  }
  return false;
}

/// What TORCH_DISTRIBUTED_DEBUG=DETAIL prints before each call. Numbers count per group: where a rank has one twice, the calls
/// are of several groups, and nothing is compared.
bool add_unequal_calls(ReportedView& view) {
  std::map<std::int64_t, std::map<std::int32_t, const Event*>> by_number;
  for (const Event* call : view.of(ReportedKind::kCalls)) {
    if (!call->seq || call->op.empty()) continue;
    if (!by_number[*call->seq].emplace(*call->rank, call).second) return false;
  }
  bool agreed = false;
  for (const auto& [number, by_rank] : by_number) {
    ReportedView::Events events;
    bool differ = false;
    for (const auto& [rank, call] : by_rank) {
      events.push_back(call);
      differ = differ || plain_op(call->op) != plain_op(events.front()->op) || (call->shape != events.front()->shape && !has_free_size(call->op));
    }
    if (!differ) {
      agreed = agreed || events.size() > 1;
      continue;
    }
    if (!agreed && number < kTellingNumber) continue;
    const std::string words = standing_text(events, "calls", "call", 8);
    Draft& draft = view.add(Verdict::kMismatch, class_of_sides(events, {}), Severity::kCertain, fmt::format("ranks begin different calls under number {}: {}", number, words.substr(0, 500)),
                            "let every member of the group take the same branch before this call, with the same sizes");
    draft.finding.explanation = draft.finding.title;
    std::vector<std::int32_t> ranks;
    for (const auto& [rank, call] : by_rank) ranks.push_back(rank);
    set_minority(events, std::move(ranks), draft.finding);
    view.support(draft.finding, events);
    return true;
  }
  return false;
}

}  // namespace lockstep
