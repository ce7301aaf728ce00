// Element counts and types of a Job as a run uses them. job_runner only.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/job.h"

namespace lockstep::testing {

/// A run needs no gigabytes to show who waits for whom: above this, counts keep apart but are made smaller. Symbols get sizes of
/// their own, the same on every rank.
inline constexpr std::uint64_t kMostElements = 1U << 16;

inline std::uint64_t run_count(Count count) {
  if (count.is_none()) return 1;
  if (count.is_symbol()) return 1000 + to_size(count.text()) % 50'000;
  if (count.number() <= kMostElements) return count.number();
  return kMostElements + count.number() % 9973;
}

/// "f32", "bf16", ...: bytes of an element; 1 for what is no number.
inline std::uint64_t type_bytes(std::string_view type) {
  if (type.ends_with("128")) return 16;
  if (type.ends_with("64")) return 8;
  if (type.ends_with("32")) return 4;
  if (type.ends_with("16")) return 2;
  return 1;
}

}  // namespace lockstep::testing
