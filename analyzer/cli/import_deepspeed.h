// Plans from DeepSpeed configurations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep {

/// What ds_config.json does not say: layers, sizes, and what the script passes to PipelineModule and to the
/// optimizer.
struct DeepSpeedImport {
  std::string config_path{};
  std::string layers_path{};  ///< layers as in a plan: an array, or an object with the member "layers"
  std::string version{};
  std::string partition{};  ///< partition_method; empty: parameters
  std::string groups = "megatron";
  std::int64_t pipe = 1, data = 1, tensor = 1;
};

struct DeepSpeedPlan {
  std::string plan{};                ///< the text of a plan file that read_plan() accepts
  std::vector<std::string> notes{};  ///< settings that decide about calls and are not in it
};

/// Errors name file and field.
Result<DeepSpeedPlan> import_deepspeed(const DeepSpeedImport& options);

}  // namespace lockstep
