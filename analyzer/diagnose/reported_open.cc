// Where nothing decides: what is known, why it is not enough, and what would decide.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/rank_ranges.h"
#include "diagnose/reported_view.h"

namespace lockstep {
namespace {

using Event = ReportedEvent;

/// Texts once each, the first so many.
class Words {
 public:
  void tell(const std::string& text) {
    constexpr std::size_t kMost = 12;
    if (text.empty() || !said_.insert(text).second || said_.size() > kMost) return;
    words_ += (words_.empty() ? "" : "; ") + text;
  }
  const std::string& text() const { return words_; }

 private:
  std::set<std::string> said_;
  std::string words_;
};

/// Every communicator that RAS lists is sound.
bool is_ras_sound(const ReportedView& view) {
  bool sound = false;
  for (const Event* event : view.of(ReportedKind::kHint)) {
    if (event->op != "RAS") continue;
    if (!event->text.ends_with("OK")) return false;
    sound = true;
  }
  return sound;
}

std::string why_open(const ReportedView& view, const std::string& words) {
  std::set<std::int32_t> ranks;
  std::set<std::int64_t> numbers;
  bool named = true;
  for (const Event& wait : view.waits()) {
    if (wait.rank) ranks.insert(*wait.rank);
    if (wait.seq) numbers.insert(*wait.seq);
    named = named && !wait.group.empty();
  }
  std::string text = words;
  if (ranks.size() == 1) text += "; one rank alone shows no difference";
  if (ranks.size() > 1 && numbers.size() <= 1) text += "; the ranks that are seen agree";
  if (numbers.size() > 1 && !named) text += "; numbers count per process group, and the lines do not say which group each is of";
  if (numbers.size() > 1 && named) text += "; they are of different process groups, or one call apart, which is normal";
  const bool warned = std::ranges::any_of(view.of(ReportedKind::kHint), [](const Event* event) { return event->text.find("WARN") != std::string::npos; });
  if (warned) text += "; warnings of NCCL about a mismatch are as often caused by the transport";
  if (is_ras_sound(view) && !view.waits().empty()) {
    text += "; RAS counts no launch that is missing: look at the devices and the transport of the ranks that wait";
  }
  return text + view.short_timeout();
}

/// Each hint once, with the ranks that wrote it; RAS's table is told apart, and what is printed always where nothing else is said.
std::vector<std::string> hint_texts(const ReportedView& view, bool printed_always) {
  std::vector<std::pair<const Event*, std::set<std::int32_t>>> hints;
  for (const Event* event : view.of(ReportedKind::kHint)) {
    if (event->op == "RAS" || (event->op == "boilerplate") != printed_always) continue;
    auto known = std::ranges::find_if(hints, [&](const auto& hint) { return hint.first->text == event->text; });
    if (known == hints.end()) known = hints.insert(hints.end(), {event, {}});
    if (event->rank) known->second.insert(*event->rank);
  }
  std::vector<std::string> texts;
  for (const auto& [event, ranks] : hints) {
    std::string text = ranks.empty() ? event->text : fmt::format("{}: {}", ranks_text(std::vector<std::int32_t>(ranks.begin(), ranks.end())), event->text);
    if (!event->ranks.empty()) text += fmt::format(" (read the log of {} first)", ranks_text(event->ranks));
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace

void add_open_logs(ReportedView& view) {
  constexpr std::size_t kMostPlaces = 8;
  Words words;
  ReportedView::Events events, waits;
  const auto use = [&](const ReportedView::Events& more) { events.insert(events.end(), more.begin(), more.end()); };
  for (const Event* event : view.of(ReportedKind::kHint)) {
    if (event->op == "RAS") words.tell("RAS: " + event->text);
  }
  for (const Event& wait : view.waits()) waits.push_back(&wait);
  use(waits);
  words.tell(standing_text(waits, "waits in", "wait in", kMostPlaces));
  for (const Event* event : view.of(ReportedKind::kProgress)) {
    words.tell(fmt::format("{} enqueued {} and completed {} on process group {}", who(*event), event->enqueued.value_or(-1),
                           event->completed.value_or(-1), event->group.empty() ? "(not named)" : event->group));
  }
  use(view.of(ReportedKind::kProgress));
  words.tell(standing_text(view.last_calls(), "had come to", "had come to", kMostPlaces));
  use(view.last_calls());
  words.tell(standing_text(view.of(ReportedKind::kStack), "stands in", "stand in", kMostPlaces));
  use(view.of(ReportedKind::kStack));
  for (const Event* event : view.of(ReportedKind::kCount)) words.tell("RAS: " + event->text);
  use(view.of(ReportedKind::kCount));
  for (const std::string& text : hint_texts(view, false)) words.tell(text);
  use(view.of(ReportedKind::kHint));
  for (const Event* event : view.of(ReportedKind::kEvent)) {
    if (event->proves) continue;
    words.tell(event->rank ? fmt::format("{}: {}", who(*event), event->text) : event->text);
    events.push_back(event);
  }
  for (const std::string& text : hint_texts(view, true)) {
    if (words.text().empty()) words.tell(text);
  }
  Draft& draft = view.add(Verdict::kInsufficient, "evidence_missing", Severity::kNote,
                          words.text().empty() ? "nothing in it says where the ranks stand" : words.text().substr(0, 700), view.next_evidence());
  draft.finding.explanation = why_open(view, words.text());
  view.support(draft.finding, events);
}

void add_hints_to_open(ReportedView& view) {
  Words words;
  for (const Event* event : view.of(ReportedKind::kHint)) words.tell(event->text);
  if (words.text().empty()) return;
  Draft& draft = view.add(Verdict::kInsufficient, "evidence_missing", Severity::kNote, words.text().substr(0, 700), view.next_evidence());
  draft.finding.explanation = words.text() + "; the calls that are in the log do not decide it";
  view.support(draft.finding, view.of(ReportedKind::kHint));
}

}  // namespace lockstep
