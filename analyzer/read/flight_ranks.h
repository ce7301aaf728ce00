// Which rank wrote a dump: the file does not say so, its name and its groups do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "read/flight_dump.h"

namespace lockstep {

/// Numbers in the last part of a path, the likeliest to be a rank first: behind "rank", at the end of the stem, the others from
/// the right.
std::vector<std::int32_t> numbers_of_name(std::string_view path);

/// By dump: its rank. From its name where its groups agree; else from the groups, where they leave one rank only; else from the
/// order of the names, where there is one dump for each rank of the job. Nothing where none of this decides, or another dump has
/// the better claim; `why` then says so. Guesses are said in FlightDump::warnings.
struct FlightRank {
  std::optional<std::int32_t> rank{};
  std::string why{};
  std::optional<std::size_t> rival{};  ///< the dump with the better claim
};
std::vector<FlightRank> flight_ranks(std::vector<std::unique_ptr<FlightDump>>& dumps);

}  // namespace lockstep
