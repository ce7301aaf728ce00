// Rank lists as people write them: "0-6,8".
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

/// "0-6,8" of sorted ranks; past `most` runs "0,2,4 and 93 more". Empty for no rank.
std::string rank_ranges(std::span<const std::int32_t> sorted_ranks, std::size_t most = 8);

/// "rank 3", "ranks 0 and 1", "ranks 0-6,8"; "no rank" for none.
std::string ranks_text(std::span<const std::int32_t> sorted_ranks);

}  // namespace lockstep
