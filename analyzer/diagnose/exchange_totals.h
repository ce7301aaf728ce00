// All-to-all exchanges whose totals do not fit: what all members send is not what all expect.
#pragma once

#include <vector>

#include "diagnose/describe.h"
#include "diagnose/draft.h"

namespace lockstep {

/// The first such exchange of each communicator on which all members have a record of it. Which pair is wrong the totals do not
/// tell. O(operations of the communicators in question)
std::vector<Draft> exchange_drafts(const Describer& describe);

}  // namespace lockstep
