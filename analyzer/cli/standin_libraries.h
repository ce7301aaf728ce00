// Where the stand-ins for NCCL and the CUDA runtime are, for `lockstep rehearse`.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

/// Absolute path of the folder with libnccl.so.2 and libcudart.so.13: LOCKSTEP_STANDIN if set, else the one installed with
/// this command, else the one of the build tree that it lies in. kUnreadable if there is none.
Result<std::string> find_standin_libraries();

/// Why the loader could not take this folder from LD_LIBRARY_PATH, in a few words; empty: it can.
std::string_view search_path_obstacle(std::string_view path);

}  // namespace lockstep
