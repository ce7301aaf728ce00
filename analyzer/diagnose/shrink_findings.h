// Ranks that shrink one communicator with different lists of those left out: each list is a communicator of its own, on which the others
// do not come.
#pragma once

#include <vector>

#include "diagnose/describe.h"
#include "diagnose/draft.h"

namespace lockstep {

/// One finding for each shrink whose callers do not agree. Ranks that part for good, each with a list that leaves all others out, do.
std::vector<Draft> shrink_drafts(const Describer& describe);

}  // namespace lockstep
