// Writes sets of ranks the short way: "0-6,8-4095", "0,8,..,504".
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace lockstep {

inline constexpr std::size_t kAnyWidth = std::numeric_limits<std::size_t>::max();

/// Ranks in any order, repeats allowed. Runs of neighbours become "a-b" (two neighbours stay "a,b"), four or
/// more at one distance become "a,b,..,z". What does not fit `max_width` (>= 16) columns ends in ",.. N in
/// all". Empty for no ranks.
std::string rank_ranges(std::span<const std::int32_t> ranks, std::size_t max_width = kAnyWidth);

/// "rank 3" or "ranks 0-6,8": for a sentence or the head of a row.
std::string named_ranks(std::span<const std::int32_t> ranks, std::size_t max_width = kAnyWidth);

/// For running text: "rank 3", "ranks 0 and 1", "ranks 0-6,8"; "no rank" for none. At most 60 columns.
std::string ranks_text(std::span<const std::int32_t> ranks);

}  // namespace lockstep
