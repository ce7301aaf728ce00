// Plans from the arguments of Megatron runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/megatron_arguments.h"

namespace lockstep {

struct MegatronImport {
  std::string plan{};                    ///< the text of a plan file that read_plan() accepts and expand() expands
  std::vector<std::string> assumed{};  ///< what the arguments leave open and was inferred
};

/// `world`: ranks; 0: as the arguments or their launcher say. Refuses what Megatron refuses when it checks its arguments.
Result<MegatronImport> import_megatron(MegatronArguments& arguments, std::int64_t world, const std::string& version);

}  // namespace lockstep
