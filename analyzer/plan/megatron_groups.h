// Process groups that Megatron's initialize_model_parallel makes, in its order, with its refusals.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/rank_groups.h"

namespace lockstep::plan {

/// Arguments of initialize_model_parallel that decide about groups; names and defaults are Megatron's.
struct MegatronLayout {
  std::int64_t world = 1;
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::optional<std::int64_t> virtual_pipeline{};
  std::int64_t context = 1;
  std::vector<std::int64_t> hierarchical_context{};
  bool hybrid_context = false;
  std::int64_t expert = 1;
  std::optional<std::int64_t> expert_tensor{};  ///< absent: as `tensor`
  std::int64_t gtp_remat = 1;
  std::int64_t expert_gtp_remat = 1;
  std::int64_t optimizer_instances = 1;
  std::string order = "tp-cp-ep-dp-pp";
  std::int64_t rank_offset = 0;
  bool gloo = true;
};

/// All calls of new_group in order. An error is what the framework itself would raise ("RuntimeError: ..."),
/// or a size beyond the limits.
Result<std::vector<NewGroup>> megatron_groups(const MegatronLayout& layout);

}  // namespace lockstep::plan
