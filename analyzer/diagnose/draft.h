// A finding in the making: what the ordering and merging of findings need to know beside its text.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/finding.h"
#include "base/ids.h"

namespace lockstep {

struct Draft {
  Finding finding{};
  CommIndex comm = kNoComm;
  bool stalls = false;             ///< ranks stand at it in replay
  std::uint32_t first_call = 0;    ///< index of the call in the program of the rank that makes it
  std::uint32_t missing = 0;       ///< calls that the divergent ranks lack on `comm`
  std::uint32_t extra = 0;         ///< calls that they make more
  bool at_end = false;             ///< what is missing is the end of the sequence
  std::uint64_t signature = 0;     ///< of the first call that is missing or extra
};

/// Joins what has one root: a rank that ended early and is missed in many places, calls made on the wrong communicator,
/// cycles that are alike. Order: what stalls the job first, then by place in the program.
std::vector<Finding> merge_drafts(std::vector<Draft> drafts);

}  // namespace lockstep
