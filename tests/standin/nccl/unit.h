// What is launched at once: the calls of one group on one communicator.
#pragma once

#include <vector>

#include "nccl/call.h"

namespace lockstep::standin {

/// Puts the calls, all of one communicator, on their streams as one piece of work. They start when all the streams have come to
/// it, and the streams go on when all the calls are done.
nccl::ncclResult_t launch_unit(std::vector<Call> calls);

}  // namespace lockstep::standin
