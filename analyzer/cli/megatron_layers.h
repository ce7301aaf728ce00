// The layers of a GPT as Megatron builds it from its arguments, with what one tensor-parallel rank owns of each.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/megatron_arguments.h"

namespace lockstep {

struct MegatronDegrees {
  std::int64_t tensor = 1, context = 1, expert = 1, expert_tensor = 1;
};

struct MegatronLayers {
  nlohmann::ordered_json layers{};  ///< as in a plan: embedding, transformer layers, final norm, output
  std::int64_t transformer_layers = 0;
};

/// What does not divide is arguments.error(). `assumed` gets a sentence for each size that is not in the arguments.
MegatronLayers megatron_layers(MegatronArguments& arguments, const MegatronDegrees& degrees, std::vector<std::string>& assumed);

}  // namespace lockstep
