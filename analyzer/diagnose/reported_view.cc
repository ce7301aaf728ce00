// See the header.
#include "diagnose/reported_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "base/rank_ranges.h"

namespace lockstep {

std::string plain_op(std::string_view op) {
  std::string out;
  for (const char c : op) {
    if (c != '_') out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  for (const std::string_view tail : {"base", "intotensor", "tensor", "object", "objectlist", "single", "coalesced", "c"}) {
    if (out.size() > tail.size() + 4 && out.ends_with(tail)) out.resize(out.size() - tail.size());
  }
  return out;
}

bool has_free_size(std::string_view op) {
  const std::string plain = plain_op(op);
  return plain.starts_with("alltoall") || plain.starts_with("gather") || plain.starts_with("scatter") || plain == "send" || plain == "recv";
}

bool has_own_number(std::string_view op) {
  const std::string plain = plain_op(op);
  return plain.starts_with("send") || plain.starts_with("recv") || plain == "coalesced";
}

std::string who(const ReportedEvent& event) {
  if (event.rank) return fmt::format("rank {}", *event.rank);
  return event.ranks.empty() ? "a rank" : ranks_text(event.ranks);
}

std::string stack_text(const ReportedEvent& event) {
  std::string_view text = event.text;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return event.caller.empty() ? std::string(text) : fmt::format("{}, called at {}", text, event.caller);
}

std::string place_of(const ReportedEvent& event) {
  std::string text = event.op.empty() ? "a collective" : event.op;
  if (event.seq) text += fmt::format(" {}", *event.seq);
  if (!event.shape.empty()) text += fmt::format(" of shape [{}]", event.shape);
  if (!event.datatype.empty()) text += fmt::format(" of {}", event.datatype);
  if (event.elements_in) text += fmt::format(" ({} elements in, {} out)", *event.elements_in, event.elements_out.value_or(0));
  if (!event.group.empty()) text += fmt::format(" of process group {}", event.group);
  if (!event.caller.empty()) text += fmt::format(", called at {}", event.caller);
  return text;
}

std::string standing_text(const std::vector<const ReportedEvent*>& events, std::string_view verb, std::string_view verb_of_many, std::size_t most) {
  // In the order in which the places come up.
  std::vector<std::pair<std::string, std::set<std::int32_t>>> places;
  std::map<std::string, std::size_t> known;
  for (const ReportedEvent* event : events) {
    const std::string place = place_of(*event);
    const auto [at, added] = known.try_emplace(place, places.size());
    if (added) places.push_back({place, {}});
    if (event->rank) places[at->second].second.insert(*event->rank);
  }
  // Where not all can be told: the place of most ranks, then those of the fewest, which are what a reader looks for.
  if (places.size() > most) {
    std::ranges::stable_sort(places, {}, [](const auto& entry) { return entry.second.size(); });
    std::ranges::rotate(places, std::prev(places.end()));
  }
  std::string text;
  std::size_t told = 0;
  for (const auto& [place, ranks] : places) {
    if (told++ == most) break;
    const std::string subject = ranks.empty() ? "a rank" : ranks_text(std::vector<std::int32_t>(ranks.begin(), ranks.end()));
    text += fmt::format("{}{} {} {}", text.empty() ? "" : "; ", subject, ranks.size() > 1 ? verb_of_many : verb, place);
  }
  if (places.size() > most) text += fmt::format("; and {} more", places.size() - most);
  return text;
}

ReportedView::ReportedView(const ReportedEvidence& reported, const Job& job) : reported_(reported), job_(job) {
  for (const Event& event : reported.events) by_kind_[static_cast<std::size_t>(event.kind)].push_back(&event);
  name_groups();
}

/// A watchdog's line and the status line behind it are of one work: the second names the group.
void ReportedView::name_groups() {
  std::map<std::pair<std::int32_t, std::int64_t>, const Event*> statuses;  // by rank and number; the last one
  for (const Event* status : of(ReportedKind::kProgress)) {
    if (status->rank && status->seq && !status->group.empty()) statuses[{*status->rank, *status->seq}] = status;
  }
  // The same work is reported by several lines.
  std::set<std::tuple<std::int32_t, std::int64_t, std::string, std::int64_t>> known;
  for (const Event* wait : of(ReportedKind::kWaits)) {
    if (wait->rank && wait->seq && !wait->group.empty()) statuses.try_emplace({*wait->rank, *wait->seq}, wait);
  }
  for (const Event* event : of(ReportedKind::kWaits)) {
    if (!known.emplace(event->rank.value_or(-1), event->seq.value_or(-1), plain_op(event->op), event->elements_in.value_or(-1)).second) continue;
    Event wait = *event;
    const auto status = event->rank && event->seq ? statuses.find({*event->rank, *event->seq}) : statuses.end();
    if (status != statuses.end() && (wait.group.empty() || wait.group == status->second->group)) {
      wait.group = status->second->group;
      wait.enqueued = status->second->enqueued;
      wait.completed = status->second->completed;
    }
    waits_.push_back(std::move(wait));
  }
}

ReportedView::Events ReportedView::last_calls() const {
  std::map<std::int32_t, const Event*> last;
  for (const Event* call : of(ReportedKind::kCalls)) {
    const Event*& known = last[*call->rank];
    if (known == nullptr || known->line < call->line) known = call;
  }
  Events calls;
  for (const auto& [rank, call] : last) calls.push_back(call);
  return calls;
}

Draft& ReportedView::add(Verdict verdict, std::string_view finding_class, Severity severity, std::string title, std::string fix) {
  Finding finding{.verdict = verdict, .finding_class = std::string(finding_class), .severity = severity};
  finding.title = std::move(title);
  finding.fix = std::move(fix);
  drafts_.push_back({.finding = std::move(finding), .stalls = true, .first_call = static_cast<std::uint32_t>(drafts_.size())});
  return drafts_.back();
}

void ReportedView::support(Finding& finding, const Events& events) const {
  constexpr std::size_t kMostEvidence = 12;
  for (const Event* event : events) {
    if (finding.evidence.size() >= kMostEvidence) break;
    if (std::ranges::find(finding.evidence, evidence(*event)) == finding.evidence.end()) finding.evidence.push_back(evidence(*event));
  }
}

void ReportedView::support_with_waits(Finding& finding) const {
  for (const Event& wait : waits_) support(finding, {&wait});
}

void ReportedView::add_standing(Finding& finding) const {
  constexpr std::size_t kMost = 6;
  Events waits;
  for (const Event& wait : waits_) waits.push_back(&wait);
  if (const std::string text = standing_text(waits, "waits in", "wait in", kMost); !text.empty()) finding.explanation += "; " + text;
  if (const std::string text = standing_text(last_calls(), "had come to", "had come to", kMost); !text.empty()) finding.explanation += "; " + text;
}

std::string ReportedView::short_timeout() const {
  std::int64_t least_ms = 0;
  for (const Event& wait : waits_) {
    if (wait.count > 0) least_ms = least_ms == 0 ? wait.count : std::min(least_ms, wait.count);
  }
  constexpr std::int64_t kShortMs = 180'000;  // loading, compiling and the first checkpoint take longer than that
  if (least_ms == 0 || least_ms > kShortMs) return {};
  return fmt::format("; the timeout of the group is {} ms only, which a rank that loads, compiles or saves may well exceed: the first thing to raise", least_ms);
}

std::string ReportedView::next_evidence() const {
  std::set<std::int32_t> seen;
  std::set<std::string_view> families;
  for (const Event& event : reported_.events) {
    if (event.rank) seen.insert(*event.rank);
    families.insert(event.family);
  }
  // What records calls in the program that wrote the log; torch's recorder where nothing tells.
  const auto only = [&](std::string_view family) {
    return families.contains(family) && std::ranges::none_of(families, [](std::string_view other) {
      return other == "torch" || other == "pgwrapper" || other == "ddp" || other == "gloo" || other == "deepspeed" || other == "fr_trace";
    });
  };
  std::string text = "collect the Flight Recorder dumps of all ranks (TORCH_FR_BUFFER_SIZE=2000, before 2.9 TORCH_NCCL_TRACE_BUFFER_SIZE=2000; "
                     "TORCH_NCCL_DUMP_ON_TIMEOUT=1)";
  if (only("jax")) text = "collect NCCL's own log of all processes (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL)";
  if (only("horovod")) text = "collect Horovod's timeline (HOROVOD_TIMELINE=FILE) and its list of stalled tensors with their ranks";
  text += seen.empty() ? ", or the logs and stacks (py-spy dump) of all ranks" : fmt::format(", or the logs and stacks (py-spy dump) of the ranks other than {}",
                                                                    ranks_text(std::vector<std::int32_t>(seen.begin(), seen.end())));
  return text;
}

}  // namespace lockstep
