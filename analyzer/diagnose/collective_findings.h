// From a difference between the members of a communicator to a finding: which class it is, in the job's words.
#pragma once

#include <string_view>

#include "diagnose/describe.h"
#include "diagnose/difference.h"
#include "diagnose/finding.h"

namespace lockstep {

/// Verdict `mismatch`, `order` or `imbalance` (or `other_cause` where the rank that lacks calls was killed); complete but
/// for wait_for and victims, which need the replay.
Finding deviation_finding(const Describer& describe, const CommunicatorDifference& difference,
                          const Deviation& deviation);

/// "ranks 0 and 1 differ..." parts that deadlock findings share.
struct CountDifference {
  ProgramIndex more = kNoProgram;  ///< made, or tries to make, the call
  ProgramIndex fewer = kNoProgram; ///< did not
  std::uint32_t operation = 0;     ///< the call, in the program of `more`
};
/// Class, explanation and fix of a number of calls that differs; fills counts too.
void explain_count_difference(const Describer& describe, const CountDifference& difference, Finding& finding);

/// What to change where a number of calls differs, by class.
std::string_view fix_of_imbalance(std::string_view finding_class);

/// A difference that fingerprints prove, between calls that no record holds.
Finding lost_difference_finding(const Describer& describe, CommIndex comm, const LostDifference& difference);

}  // namespace lockstep
