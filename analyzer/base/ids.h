// Index types that must not be swapped: each names the table of a Job that it points into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace lockstep {

enum class CommIndex : std::uint32_t {};     ///< Job::communicators()
enum class ProgramIndex : std::uint32_t {};  ///< Job::programs(), in order of job rank
enum class StringIndex : std::uint32_t {};   ///< Job::text(); 0 = the empty string
enum class SiteIndex : std::uint32_t {};     ///< Job::site(); 0 = not known
enum class SourceIndex : std::uint32_t {};   ///< Job::sources(): the files that a Job was read from

inline constexpr CommIndex kNoComm{std::numeric_limits<std::uint32_t>::max()};
inline constexpr ProgramIndex kNoProgram{std::numeric_limits<std::uint32_t>::max()};

template <class Index>
constexpr std::size_t to_size(Index index) {
  return static_cast<std::size_t>(index);
}

}  // namespace lockstep
