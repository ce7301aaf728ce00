// The orders of computation that torch.distributed.pipelining's schedule classes make, bubbles included
// (schedules.py).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/schedule/torch_action.h"

namespace lockstep::plan {

enum class TorchSchedule : std::uint8_t {
  kGPipe,
  k1F1B,  ///< as Schedule1F1B._get_pipeline_order displays it: the last stage starts with micro-batch 1. See
          ///< torch_runtime.h for what runs
  kLoopedBfs,
  kInterleaved1F1B,
  kInterleavedZeroBubble,
  kZbv,
  kDualPipeV,
};
std::string_view torch_schedule_name(TorchSchedule schedule);

struct TorchQuery {
  TorchSchedule schedule = TorchSchedule::kGPipe;
  std::int32_t ranks = 1;
  std::int32_t stages_per_rank = 1;
  std::int32_t micro_batches = 1;
  std::string_view version{};  ///< of torch
  std::int32_t stages() const { return ranks * stages_per_rank; }
};

/// Why the schedule class refuses this ("ValueError: ..."); nothing where it does not.
std::optional<std::string> torch_rejection(const TorchQuery& query);

/// Precondition: not rejected.
TorchOrder torch_order(const TorchQuery& query);

/// Rank of each stage: round and round, or forth and back.
std::vector<std::int32_t> torch_stage_ranks(std::int32_t ranks, std::int32_t stages, bool vee);

}  // namespace lockstep::plan
