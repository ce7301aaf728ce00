// What prefix fingerprints say about calls that the rings have lost: that all members agreed on them, or between which positions
// they first did not.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/trace_format.h"
#include "model/job.h"

namespace lockstep {

/// What one member knows of its fingerprint on a communicator.
struct MemberStates {
  std::int32_t rank = 0;                     ///< job rank
  std::vector<trace::Checkpoint> states{};   ///< in any order; a position may occur twice with one fingerprint
};

struct Agreement {
  /// All members have equal fingerprints after this many calls; 0 = at no position that all of them know.
  std::uint64_t proven = 0;
  /// The first position known to two members at which they are unequal: the difference lies in calls `proven` to this - 1.
  std::optional<std::uint64_t> differs_by{};
  std::vector<std::vector<std::int32_t>> parties{};  ///< job ranks by fingerprint there, largest party first
};

/// O(states log states)
Agreement compare_states(const std::vector<MemberStates>& members);

}  // namespace lockstep
