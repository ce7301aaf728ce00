// What a job leaves behind: the same programs as seen from a run, finished, hung or still going.
#pragma once

#include "support/random.h"
#include "support/sketch.h"

namespace lockstep::testing {

/// All calls, those marked that complete in a run (under what the library promises) and those that a rank is
/// inside. Calls that no rank comes to stay as they are, as in a plan that is followed.
JobSketch as_recorded(const JobSketch& job);

/// One rank's evidence alone says that all its calls completed.
JobSketch with_completed_rank(const JobSketch& job, std::size_t rank);

/// A run that stands still as its recorder left it: no rank has calls that it did not come to, and the ranks
/// that stand are still there. The same as as_recorded for a job that comes to its end.
JobSketch as_hung(const JobSketch& job);

/// The run of a correct job, stopped somewhere in the middle: every rank is somewhere else, as a debugger
/// would find it.
JobSketch live_snapshot(const JobSketch& correct, Random& random);

}  // namespace lockstep::testing
