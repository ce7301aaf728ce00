// The name and version that reports carry; the version is that of the CMake project.
#include "report/tool.h"

namespace lockstep {

std::string_view tool_name() { return "lockstep " LOCKSTEP_VERSION; }

}  // namespace lockstep
