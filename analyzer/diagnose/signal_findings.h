// Signals of NCCL (ncclPutSignal, ncclSignal, ncclWaitSignal): waits for more of them than anybody sends.
#pragma once

#include <vector>

#include "diagnose/describe.h"
#include "diagnose/draft.h"

namespace lockstep {

/// One for each rank and communicator whose waits ask for more signals than are sent to the rank there. Claimed only where all members
/// left whole records and the others have ended. Traces hold the number of a wait, not the peer and index of each part of it, so
/// sums are compared. O(calls of programs that signal)
std::vector<Draft> signal_drafts(const Describer& describe);

}  // namespace lockstep
