// Megatron's RankGenerator: groups of ranks along any set of parallel axes, for any order of the axes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plan/rank_groups.h"

namespace lockstep::plan {

/// Sizes by axis: "tp", "pp", "dp", "ep", "cp", "gtp_remat".
using AxisSizes = std::map<std::string, std::int64_t, std::less<>>;

/// The leftmost axis of `order` ("tp-cp-ep-dp-pp") has the smallest stride.
class RankGenerator {
 public:
  /// Errors as the framework raises them: axes larger than 1 that `order` does not name, names that are no
  /// axis.
  static Result<RankGenerator> make(const AxisSizes& sizes, std::string_view order, std::int64_t rank_offset);

  /// Groups along the axes of `token` ("tp-pp"), in order of creation.
  Result<RankLists> ranks(std::string_view token) const;

 private:
  std::vector<std::string> axes_{};
  std::vector<std::int64_t> sizes_{};
  std::int64_t world_ = 1;
  std::int64_t rank_offset_ = 0;
};

/// `order` with the axis gtp_remat behind `after`, or behind tp, or first.
std::string with_gtp_remat(std::string_view order, std::string_view after);

/// "a-b" -> {"a", "b"}; an empty text has one empty part, as in Python.
std::vector<std::string> split_order(std::string_view order);

}  // namespace lockstep::plan
