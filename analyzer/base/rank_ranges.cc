// Writes sets of ranks the short way.
#include "base/rank_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

// Ranks first, first + step, ..., last.
struct Run {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t step = 1;
};

constexpr std::ptrdiff_t kShortestStridedRun = 4;  // "0,2,4" is as short as "0,2,..,4" and clearer

std::vector<Run> runs_of(std::span<const std::int32_t> sorted) {
  std::vector<Run> runs;
  for (auto first = sorted.begin(); first != sorted.end();) {
    auto last = first;
    std::int64_t step = 1;
    if (first + 1 != sorted.end()) {
      step = std::int64_t{first[1]} - first[0];
      while (last + 1 != sorted.end() && std::int64_t{last[1]} - last[0] == step) ++last;
    }
    const auto length = last - first + 1;
    // A short strided run is one rank; the next run may begin with the rank after it ("0,4-7").
    if (step != 1 && length < kShortestStridedRun) last = first;
    runs.push_back({*first, *last, step});
    first = last + 1;
  }
  return runs;
}

std::string run_text(const Run& run) {
  if (run.first == run.last) return fmt::format("{}", run.first);
  if (run.step != 1) return fmt::format("{},{},..,{}", run.first, run.first + run.step, run.last);
  return fmt::format("{}{}{}", run.first, run.last == run.first + 1 ? "," : "-", run.last);
}

std::vector<std::int32_t> sorted_set(std::span<const std::int32_t> ranks) {
  std::vector<std::int32_t> sorted(ranks.begin(), ranks.end());
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

}  // namespace

std::string rank_ranges(std::span<const std::int32_t> ranks, std::size_t max_width) {
  const std::vector<std::int32_t> sorted = sorted_set(ranks);
  const std::vector<Run> runs = runs_of(sorted);
  const std::string in_all = fmt::format(",.. {} in all", sorted.size());
  std::string text;
  std::string cut = in_all.substr(1);  // the longest beginning that leaves room for `in_all`
  for (const Run& run : runs) {
    if (!text.empty()) text += ',';
    text += run_text(run);
    if (max_width != kAnyWidth && text.size() > max_width) return cut;
    if (max_width != kAnyWidth && text.size() + in_all.size() <= max_width) cut = text + in_all;
  }
  return text;
}

std::string named_ranks(std::span<const std::int32_t> ranks, std::size_t max_width) {
  const bool one =
      !ranks.empty() && std::ranges::all_of(ranks, [&](auto rank) { return rank == ranks.front(); });
  const std::size_t label = one ? 5 : 6;
  const std::size_t room = max_width == kAnyWidth ? kAnyWidth : max_width - std::min(max_width, label);
  return (one ? "rank " : "ranks ") + rank_ranges(ranks, room);
}

std::string ranks_text(std::span<const std::int32_t> ranks) {
  if (ranks.empty()) return "no rank";
  if (ranks.size() == 2 && ranks[0] != ranks[1]) {
    return fmt::format("ranks {} and {}", std::min(ranks[0], ranks[1]), std::max(ranks[0], ranks[1]));
  }
  return named_ranks(ranks, 60);
}

}  // namespace lockstep
