// Process groups as lists of ranks, and what all layouts need to build them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep::plan {

using RankList = std::vector<std::int32_t>;
using RankLists = std::vector<RankList>;

/// Ranks that a layout may have; more is an error.
inline constexpr std::int64_t kMaxWorld = 1 << 20;

/// One call that makes a process group. It is a collective of the whole world, so that the order of these
/// calls matters.
struct NewGroup {
  std::string name{};  ///< what the framework calls the kind of group; several calls share it
  RankList ranks{};    ///< as passed, which is not always in ascending order
  friend bool operator==(const NewGroup&, const NewGroup&) = default;
};

/// What the framework itself says where it refuses a layout: "AssertionError: 12 is not divisible by 8".
Error rejected(std::string_view exception, std::string_view message);

/// `first`, `first + stride`, ...: `count` ranks.
RankList strided(std::int64_t first, std::int64_t count, std::int64_t stride = 1);

/// Lists as Python prints them: "[[0, 1], [2, 3]]".
std::string python_text(std::span<const std::int64_t> list);
std::string python_text(const RankLists& lists);

/// The product, or an error where it exceeds kMaxWorld or a factor is below 1. `names` and `sizes` are
/// equally long.
Result<std::int64_t> checked_world(std::span<const std::string> names, std::span<const std::int64_t> sizes);

}  // namespace lockstep::plan
