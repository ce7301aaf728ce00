// The size of the recorder's ring as LOCKSTEP_RING and --ring spell it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

inline constexpr std::uint64_t kDefaultRingBytes = std::uint64_t{16} << 20;
inline constexpr std::uint64_t kSmallestRingBytes = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kLargestRingBytes = std::uint64_t{16} << 30;

/// "16M" -> 16777216; nullopt for what is no size (the recorder would take its default) or outside of the
/// limits.
std::optional<std::uint64_t> parse_ring_size(std::string_view text);

/// What the trace file of a ring of that size takes on the disk, about: tables and side records come to it.
std::uint64_t trace_file_bytes(std::uint64_t ring_bytes);

}  // namespace lockstep
