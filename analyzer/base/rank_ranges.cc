// See the header.
#include "base/rank_ranges.h"

#include <fmt/format.h>

namespace lockstep {

std::string rank_ranges(std::span<const std::int32_t> sorted_ranks, std::size_t most) {
  std::string text;
  std::size_t runs = 0;
  for (std::size_t first = 0; first < sorted_ranks.size();) {
    std::size_t last = first;
    while (last + 1 < sorted_ranks.size() && sorted_ranks[last + 1] == sorted_ranks[last] + 1) ++last;
    if (runs == most) return fmt::format("{} and {} more", text, sorted_ranks.size() - first);
    if (runs++ > 0) text += ',';
    text += last == first       ? fmt::format("{}", sorted_ranks[first])
            : last == first + 1 ? fmt::format("{},{}", sorted_ranks[first], sorted_ranks[last])
                                : fmt::format("{}-{}", sorted_ranks[first], sorted_ranks[last]);
    first = last + 1;
  }
  return text;
}

std::string ranks_text(std::span<const std::int32_t> sorted_ranks) {
  if (sorted_ranks.empty()) return "no rank";
  if (sorted_ranks.size() == 1) return fmt::format("rank {}", sorted_ranks[0]);
  if (sorted_ranks.size() == 2) return fmt::format("ranks {} and {}", sorted_ranks[0], sorted_ranks[1]);
  return "ranks " + rank_ranges(sorted_ranks);
}

}  // namespace lockstep
