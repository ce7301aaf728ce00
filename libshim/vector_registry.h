// Count vectors of v-collectives in the side area: each distinct one once, while there is room.
#pragma once

#include <cstdint>

namespace lockstep::shim {

/// Id of a stored vector with this hash; 0 = none.
std::uint32_t find_vector(std::uint64_t hash) noexcept;
/// Room for a new vector; null = no room, or too many. Then fill it and call `end_vector`. Cold.
std::uint64_t* begin_vector(std::uint64_t hash, std::uint32_t values, std::uint32_t& id) noexcept;
void end_vector(std::uint64_t* values) noexcept;
/// For a new file after a fork.
void reset_vectors() noexcept;

}  // namespace lockstep::shim
