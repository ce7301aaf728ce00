// Lists of ranks: building, checking and printing them.
#include "plan/rank_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep::plan {

Error rejected(std::string_view exception, std::string_view message) {
  return {ErrorCode::kMalformed, fmt::format("{}: {}", exception, message)};
}

RankList strided(std::int64_t first, std::int64_t count, std::int64_t stride) {
  RankList ranks;
  ranks.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) ranks.push_back(static_cast<std::int32_t>(first + i * stride));
  return ranks;
}

std::string python_text(std::span<const std::int64_t> list) {
  return fmt::format("[{}]", fmt::join(list, ", "));
}

std::string python_text(const RankLists& lists) {
  std::vector<std::string> texts;
  for (const RankList& list : lists) texts.push_back(fmt::format("[{}]", fmt::join(list, ", ")));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

Result<std::int64_t> checked_world(std::span<const std::string> names, std::span<const std::int64_t> sizes) {
  std::int64_t world = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1 || sizes[i] > kMaxWorld)
      return Error{ErrorCode::kMalformed,
                   fmt::format("{} must be between 1 and {}, not {}", names[i], kMaxWorld, sizes[i])};
    world *= sizes[i];
    if (world > kMaxWorld) return Error{ErrorCode::kMalformed, fmt::format("more than {} ranks", kMaxWorld)};
  }
  return world;
}

}  // namespace lockstep::plan
