// From an order of computation to what torch.distributed.pipelining's runtime executes: FSDP and gradient
// actions, sends and receives; and its own validation (schedules.py, runtime.py).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/schedule/timeline.h"
#include "plan/schedule/torch_action.h"

namespace lockstep::plan {

/// Whether waits for sends and reductions are actions (torch 2.15), or are left to the end of the step.
enum class TorchWaits : std::uint8_t { kAtTheEnd, kNamed };

/// Puts REDUCE_GRAD behind the last full or weight backward of each stage, and its wait, where that is named. Bubbles go.
TorchRow add_reduce_grad(const TorchRow& row, std::int32_t micro_batches, TorchWaits waits = TorchWaits::kAtTheEnd);

/// A wait for each send: of an activation behind the backward that shows its arrival, else at the end.
TorchRow add_wait_send(const TorchRow& row);

/// UNSHARD before use, for the next stages too, and RESHARD of those that are not among them. Bubbles go.
TorchRow add_unshard_reshard(const TorchRow& row, std::size_t max_active_stages = 3);

/// SEND and RECV: the sender's progress places the receive of its peer. The error is the runtime's own: the
/// order can go no further. Actions must have been validated.
Result<TorchOrder> add_send_recv(const TorchOrder& order, const std::vector<std::int32_t>& stage_ranks,
                                 std::int32_t micro_batches);

struct TorchLowered {
  std::vector<std::int32_t> stage_ranks{};
  TorchOrder compute_comms{};     ///< as the runtime executes it
  TorchOrder compute_sendrecv{};  ///< without UNSHARD, RESHARD and REDUCE_GRAD, lowered by itself
};
/// Validates and lowers. The error is upstream's ("AssertionError: ...").
Result<TorchLowered> lower_torch_order(const TorchOrder& order, std::int32_t stages,
                                       std::int32_t micro_batches, TorchWaits waits = TorchWaits::kAtTheEnd);

/// As the runtime issues it: each SEND and RECV is a batch of its own; a receive is waited for by what
/// consumes it, sends where a wait is named, else at the end, the last first. Chunks are stages.
Timeline torch_timeline(const TorchOrder& compute_comms, const std::vector<std::int32_t>& stage_ranks);

}  // namespace lockstep::plan
