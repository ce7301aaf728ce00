// torch.distributed.pipelining's own check of an order of computation (_validate_schedule).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/schedule/torch_action.h"

namespace lockstep::plan {

/// What it says, the first line, with the exception's name; rank and step count from 0. Nothing where it
/// accepts; `stage_ranks` then has the rank of each stage. Micro-batches that a file counts past
/// `micro_batches` are kept apart, as upstream's sets do.
std::optional<std::string> torch_validation_error(const TorchOrder& order, std::int32_t stages,
                                                  std::int32_t micro_batches,
                                                  std::vector<std::int32_t>& stage_ranks);

}  // namespace lockstep::plan
