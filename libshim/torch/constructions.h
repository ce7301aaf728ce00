// What makes and ends process groups: init_process_group, new_group, split_group, destroy_process_group. Functions of Python that block, so a
// stand-in is put before each, while torch.distributed is being imported.
#pragma once

#include "torch/python_api.h"

namespace lockstep::shim::torch {

/// From now on torch.distributed.distributed_c10d is waited for. The interpreter's lock is held. Cold.
void await_constructions() noexcept;

}  // namespace lockstep::shim::torch
