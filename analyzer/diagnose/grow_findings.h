// Communicators of NCCL that all members so far want to grow (ncclCommGrow), and those that are to come have not all joined.
#pragma once

#include <vector>

#include "diagnose/describe.h"
#include "diagnose/draft.h"

namespace lockstep {

/// One for each communicator all of whose members stand in one grow of it. The size that they state tells how many are to come; who
/// these are is known only where no other rank of the job could be meant. `stalled`: two looks at a live job showed that nobody moves.
/// Decides where whole records show that those who are to come do not. O(operations)
std::vector<Draft> grow_drafts(const Describer& describe, bool stalled);

}  // namespace lockstep
