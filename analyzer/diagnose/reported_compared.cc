// What a library itself compared: both sides, or one side and a word that they differ.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/reported_view.h"

namespace lockstep {
namespace {

using Event = ReportedEvent;

std::string key_of(const Event& side) {
  return fmt::format("{}|{}|{}|{}", plain_op(side.op), side.shape, side.datatype, side.seq.value_or(-1));
}

/// What a library said, in words that need no knowledge of it.
std::string words_of(const Event& told) {
  if (told.op != "gloo message" || !told.elements_in || !told.elements_out) return told.text;
  return fmt::format("{} received {} bytes from another rank in a call that has room for {} (gloo: {})", told.rank ? who(told) : "a rank", *told.elements_in,
                     *told.elements_out, told.text);
}

}  // namespace

std::string_view class_of_sides(const ReportedView::Events& sides, const ReportedView::Events& told) {
  if (sides.size() < 2) {
    const bool sizes = std::ranges::any_of(told, [](const Event* event) {
      return event->text.find("SIZE") != std::string::npos || event->text.find("shape") != std::string::npos || event->text.find("params") != std::string::npos ||
             event->op.ends_with(" message") || event->text.find("TRUNCATE") != std::string::npos;
    });
    return sizes ? "size_differs" : "kind_differs";
  }
  if (plain_op(sides[0]->op) != plain_op(sides[1]->op)) return "kind_differs";
  if (sides[0]->shape != sides[1]->shape) return "size_differs";
  return sides[0]->datatype != sides[1]->datatype ? "datatype_differs" : "kind_differs";
}

void set_minority(const ReportedView::Events& sides, std::vector<std::int32_t> ranks, Finding& finding) {
  std::map<std::string, std::vector<std::int32_t>> parties;
  for (const Event* side : sides) {
    if (side->rank) parties[key_of(*side)].push_back(*side->rank);
  }
  std::size_t most = 0, total = 0;
  const std::string* majority = nullptr;
  for (const auto& [key, members] : parties) {
    total += members.size();
    if (members.size() <= most) continue;
    most = members.size();
    majority = &key;
  }
  finding.divergent_ranks = std::move(ranks);
  finding.divergent_meaning = DivergentMeaning::kNoMajority;
  if (majority == nullptr || 2 * most <= total || parties.size() < 2) return;
  finding.divergent_ranks.clear();
  for (const auto& [key, members] : parties) {
    if (&key != majority) finding.divergent_ranks.insert(finding.divergent_ranks.end(), members.begin(), members.end());
  }
  std::ranges::sort(finding.divergent_ranks);
  finding.divergent_meaning = DivergentMeaning::kMinority;
}

void add_compared(ReportedView& view) {
  const auto& sides = view.of(ReportedKind::kSide);
  const auto& told = view.of(ReportedKind::kDiffers);
  if (sides.empty() && told.empty()) return;
  ReportedView::Events by_rank;
  std::set<std::optional<std::int32_t>> seen;
  for (const Event* side : sides) {
    if (seen.insert(side->rank).second) by_rank.push_back(side);
  }
  std::string words;
  constexpr std::size_t kMostTold = 6;
  std::set<std::int32_t> ranks;
  bool calls_differ = false, seqs_differ = false;
  for (const Event* side : by_rank) {
    const Event& first = *by_rank.front();
    if (ranks.size() < kMostTold) words += fmt::format("{}{} is in {}", words.empty() ? "" : ", ", who(*side), place_of(*side));
    if (side->rank) ranks.insert(*side->rank);
    calls_differ = calls_differ || (!side->op.empty() && !first.op.empty() && plain_op(side->op) != plain_op(first.op)) ||
                   side->shape != first.shape || side->datatype != first.datatype;
    seqs_differ = seqs_differ || (side->seq && first.seq && *side->seq != *first.seq);
  }
  std::set<std::string> texts;
  bool by_gloo_alone = by_rank.empty();
  for (const Event* event : told) {
    ranks.insert(event->ranks.begin(), event->ranks.end());
    by_gloo_alone = by_gloo_alone && event->op == "gloo message";
    const std::string text = words_of(*event);
    if (by_rank.empty() && texts.insert(text).second && texts.size() <= kMostTold) words += (words.empty() ? "" : "; ") + text;
  }
  // Numbers that differ where the calls are not told: one rank made more calls than the other.
  const bool only_numbers = seqs_differ && !calls_differ;
  Draft& draft = view.add(only_numbers ? Verdict::kImbalance : Verdict::kMismatch, only_numbers ? "count_differs_by_local_state" : class_of_sides(by_rank, told),
                          Severity::kCertain, fmt::format("a library compared the calls, and they differ: {}", words.substr(0, 600)),
                          "let every member of the group take the same branch before this call, with the same sizes and types");
  draft.finding.explanation = draft.finding.title;
  for (const Event* event : view.of(ReportedKind::kHint)) {
    if (event->text.find("sizes:") != std::string::npos) draft.finding.explanation += "; " + event->text;
  }
  if (by_gloo_alone) {
    draft.finding.explanation += "; gloo names neither the call nor the other rank: the two are in calls of other sizes, or in other calls of the same group";
    draft.finding.fix += "; the Flight Recorder dumps of all ranks (TORCH_FR_BUFFER_SIZE=2000), or TORCH_DISTRIBUTED_DEBUG=DETAIL, name the call and the rank";
  }
  if (by_rank.size() == 1 && told.empty()) draft.finding.explanation += "; the other side is not in the log";
  view.support(draft.finding, sides);
  view.support(draft.finding, told);
  set_minority(by_rank, {ranks.begin(), ranks.end()}, draft.finding);
}

}  // namespace lockstep
