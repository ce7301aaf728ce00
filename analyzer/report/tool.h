// The name and version that reports and `lockstep --version` carry.
#pragma once

#include <string_view>

namespace lockstep {

std::string_view tool_name();  ///< "lockstep 0.1.0"

}  // namespace lockstep
