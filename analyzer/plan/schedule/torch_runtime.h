// The step loops that torch.distributed.pipelining runs for its single-stage schedules, GPipe and 1F1B: every
// batch_isend_irecv and every wait, in order. (The displayed order of its 1F1B is another one, and wrong:
// torch_orders.h.)
#pragma once

#include <cstdint>

#include "plan/schedule/timeline.h"

namespace lockstep::plan {

enum class TorchRuntimeSchedule : std::uint8_t { kGPipe, k1F1B };

/// Ids of batches are positions in the list of events, as the loops' trace numbers them.
Timeline torch_runtime_timeline(TorchRuntimeSchedule schedule, std::int32_t stages,
                                std::int32_t micro_batches, bool forward_only);

}  // namespace lockstep::plan
