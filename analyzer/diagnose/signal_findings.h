// Signals of NCCL (ncclPutSignal, ncclSignal, ncclWaitSignal): waits for more of them than anybody sends.
#pragma once

#include <vector>

#include "diagnose/describe.h"
#include "diagnose/draft.h"

namespace lockstep {

/// One for each rank and communicator whose waits ask for more signals than are sent to the rank there: of one peer, by the waits that
/// name one, or of all members. Claimed only where the record of the rank is whole, and where those that could still signal left whole
/// records and have ended. A trace names the peer of a wait with one descriptor; index and context must be 0 up to NCCL 2.32, and
/// sums over them are a bound where they need not. O(calls of programs that signal)
std::vector<Draft> signal_drafts(const Describer& describe);

}  // namespace lockstep
