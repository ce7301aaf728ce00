// Calls that the library refused: why a rank lacks a call, and messages to the own rank that NCCL does not take.
#pragma once

#include <vector>

#include "diagnose/describe.h"
#include "diagnose/draft.h"

namespace lockstep {

/// Says of a rank that lacks a call, or the partner of a message, that it made the call and the library refused it; where the call
/// differs from that of the others, the verdict is `mismatch`. True where that is so.
bool explain_refused_call(const Describer& describe, Draft& draft);

/// Messages of NCCL to the own rank that were refused, one finding a communicator: nobody else waits for them.
std::vector<Draft> refused_self_messages(const Describer& describe);

}  // namespace lockstep
