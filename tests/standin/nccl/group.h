// Groups: what a thread calls between ncclGroupStart and the outermost ncclGroupEnd is launched there.
#pragma once

#include <functional>

#include "nccl/call.h"

namespace lockstep::standin {

void begin_group();
/// `launch` false: forget the calls (ncclGroupSimulateEnd).
nccl::ncclResult_t end_group(bool launch);
bool in_group();

/// Launches the call, or keeps it for the end of the group.
nccl::ncclResult_t issue_call(Call call);

/// A call that blocks the host until others have made theirs. In a group it is run at its end, beside the others of the group; for a
/// communicator that does not block, beside the caller.
nccl::ncclResult_t run_blocking(ncclComm* comm, std::function<nccl::ncclResult_t()> job);

/// What a refused call returns: a group it is in fails with it.
nccl::ncclResult_t refuse(nccl::ncclResult_t result);

}  // namespace lockstep::standin
