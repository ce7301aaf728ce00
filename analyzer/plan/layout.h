// Where the ranks of a plan stand: their coordinates, and the process groups that they belong to.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "plan/rank_groups.h"

namespace lockstep::plan {

/// Axes that a value may vary over, in the order in which a report tries them.
enum class Axis : std::uint8_t { kStage, kTensor, kExpert, kData, kRank };
inline constexpr std::array kAxes = {Axis::kStage, Axis::kTensor, Axis::kExpert, Axis::kData, Axis::kRank};
std::string_view axis_name(Axis axis);

/// All groups of one kind, "pipe" or "model", and which of them holds each rank.
struct GroupFamily {
  RankLists groups{};
  std::vector<std::int32_t> group_of_rank{};  ///< index into groups; -1: in none

  static GroupFamily of(RankLists groups, std::int64_t world);
};

class Layout {
 public:
  std::int64_t world = 1;
  std::array<std::vector<std::int32_t>, kAxes.size()> coordinates{};  ///< by axis and rank
  std::map<std::string, GroupFamily, std::less<>> families{};

  std::int32_t coordinate(Axis axis, std::int32_t rank) const {
    return coordinates[static_cast<std::size_t>(axis)][static_cast<std::size_t>(rank)];
  }
  /// nullptr: there is no such family, or the rank is in none of its groups.
  const RankList* group(std::string_view family, std::int32_t rank) const;
  /// 1 where there is no group.
  std::int64_t group_size(std::string_view family, std::int32_t rank) const;
};

/// Errors: what the framework itself refuses, and sizes that do not divide. A family "tied.KEY" is made for
/// each tie key whose layers lie on the stages `ties` names.
Result<Layout> make_layout(const Plan& plan,
                           const std::map<std::string, std::vector<std::int64_t>>& tied_stages);

}  // namespace lockstep::plan
