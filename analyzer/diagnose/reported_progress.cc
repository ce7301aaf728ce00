// How far the members of one named group have come: what torch's status and dump lines say of enqueued and completed calls.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/rank_ranges.h"
#include "diagnose/reported_view.h"

namespace lockstep {
namespace {

using Event = ReportedEvent;

struct Progress {
  std::int64_t enqueued = -1, completed = -1;
  const Event* event = nullptr;
  const Event* wait = nullptr;
};
using GroupProgress = std::map<std::int32_t, Progress>;

/// By group and rank. Lines without a group belong to the only group there is.
std::map<std::string, GroupProgress> collect(const ReportedView& view) {
  std::map<std::string, GroupProgress> groups;
  std::set<std::string> named;
  for (const Event* event : view.of(ReportedKind::kProgress)) {
    if (!event->group.empty()) named.insert(event->group);
  }
  std::map<std::int32_t, ReportedView::Events> waits;
  for (const Event& wait : view.waits()) {
    if (wait.rank) waits[*wait.rank].push_back(&wait);
  }
  for (const Event* event : view.of(ReportedKind::kProgress)) {
    std::vector<std::int32_t> ranks = event->ranks;
    if (event->rank) ranks.push_back(*event->rank);
    const std::string group = event->group.empty() && named.size() == 1 ? *named.begin() : event->group;
    for (const std::int32_t rank : ranks) {
      Progress& progress = groups[group][rank];
      if (event->enqueued.value_or(-1) < progress.enqueued) continue;
      progress.enqueued = event->enqueued.value_or(-1);
      progress.completed = std::max(progress.completed, event->completed.value_or(-1));
      progress.event = event;
      for (const Event* wait : waits[rank]) {
        if (wait->group == group || wait->group.empty()) progress.wait = wait;
      }
    }
  }
  return groups;
}

/// The number by which one rank is behind the others of the group; 0: no such rank.
std::int64_t delta_of(const GroupProgress& ranks) {
  std::int64_t least = -1, most = -1;
  for (const auto& [rank, progress] : ranks) {
    least = least < 0 ? progress.enqueued : std::min(least, progress.enqueued);
    most = std::max(most, progress.enqueued);
  }
  return least < 0 ? 0 : most - least;
}

/// "rank 2 made 17 fewer calls on X and 17 more on Y": it took another path through the program, of the same length.
std::string path_swap(const std::map<std::string, GroupProgress>& groups) {
  std::map<std::int64_t, std::vector<std::string>> by_delta;
  for (const auto& [group, ranks] : groups) {
    constexpr std::int64_t kTelling = 2;
    const std::int64_t delta = ranks.size() < 2 ? 0 : delta_of(ranks);
    if (delta >= kTelling) by_delta[delta].push_back(group);
  }
  for (const auto& [delta, names] : by_delta) {
    if (names.size() > 1) {
      return fmt::format("; on process groups {} members are apart by the same {} calls: a rank took a path that makes them on the one group "
                         "instead of the other", fmt::join(names, " and "), delta);
    }
  }
  return {};
}

bool add_group_progress(ReportedView& view, const std::string& group, const GroupProgress& ranks, const std::string& swap) {
  std::int64_t stuck = -1, far = -1;  // the lowest call that a rank waits in; the furthest that one has completed
  for (const auto& [rank, progress] : ranks) {
    if (progress.event->seq && (stuck < 0 || *progress.event->seq < stuck)) stuck = *progress.event->seq;
    far = std::max(far, progress.completed);
  }
  ReportedView::Events events;
  std::string words;
  for (const auto& [rank, progress] : ranks) {
    events.push_back(progress.event);
    if (events.size() <= 10) {
      words += fmt::format("{}rank {} enqueued {} and completed {}", words.empty() ? "" : ", ", rank, progress.enqueued, progress.completed);
      if (progress.event->seq) words += fmt::format(", stuck in {}", *progress.event->seq);
    }
  }
  // Ranks that never enqueued the call that the others wait in, and are not behind by their own watchdog's delay.
  std::vector<std::int32_t> absent;
  std::size_t present = 0;
  for (const auto& [rank, progress] : ranks) {
    if (stuck >= 0 && progress.enqueued >= 0 && progress.enqueued < stuck && progress.completed == progress.enqueued) absent.push_back(rank);
    else if (progress.enqueued >= stuck) ++present;
  }
  std::string op;
  for (const Event& wait : view.waits()) {
    if (wait.seq && *wait.seq == stuck) op = wait.op;
  }
  if (!absent.empty() && present > 0) {
    Draft& draft = view.add(Verdict::kImbalance, "never_arrived", Severity::kCertain,
                            fmt::format("{} did not enqueue {} {} on process group {}, in which the others wait", ranks_text(absent), op.empty() ? "call" : op, stuck, group),
                            fmt::format("look for the branch that {} took: a stack of each (py-spy dump)", ranks_text(absent)));
    draft.finding.explanation = fmt::format("on process group {}: {}", group, words);
    if (const std::int64_t delta = delta_of(ranks); delta > 1) draft.finding.explanation += fmt::format("; they are up to {} calls apart", delta);
    draft.finding.explanation += swap;
    draft.finding.divergent_ranks = absent;
    draft.finding.divergent_meaning = DivergentMeaning::kMissing;
    view.support(draft.finding, events);
    return true;
  }
  // A rank that has completed calls which another still waits in made other calls under these numbers.
  if (stuck >= 0 && far >= stuck + 1) {
    std::vector<std::int32_t> all;
    for (const auto& [rank, progress] : ranks) {
      all.push_back(rank);
      if (progress.wait != nullptr) words += fmt::format(", rank {} waits in {}", rank, place_of(*progress.wait));
    }
    Draft& draft = view.add(Verdict::kMismatch, "kind_differs", Severity::kCertain,
                            fmt::format("on process group {} a rank has completed call {} while another waits in call {}", group, far, stuck),
                            "compare the calls of these ranks from there on: run with TORCH_DISTRIBUTED_DEBUG=DETAIL, or with the Flight Recorder");
    draft.finding.explanation = fmt::format("{}: {}{}", draft.finding.title, words, swap);
    draft.finding.divergent_ranks = std::move(all);
    draft.finding.divergent_meaning = DivergentMeaning::kNoMajority;
    view.support(draft.finding, events);
    return true;
  }
  return false;
}

}  // namespace

bool add_unequal_progress(ReportedView& view) {
  const auto groups = collect(view);
  const std::string swap = path_swap(groups);
  for (const auto& [group, ranks] : groups) {
    if (group.empty() || ranks.size() < 2) continue;
    // Messages are counted with the collectives there, and not alike on all ranks.
    const bool has_messages = std::ranges::any_of(ranks, [](const auto& entry) {
      return entry.second.wait != nullptr && has_own_number(entry.second.wait->op);
    });
    if (!has_messages && add_group_progress(view, group, ranks, swap)) return true;
  }
  return false;
}

}  // namespace lockstep
