// Which files are the traces of one run.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct TraceFile {
  std::string path{};
  std::string name{};  ///< "<run>/<host>.<pid>.<start>.lst"
};

struct RunTraces {
  std::vector<TraceFile> files{};  ///< sorted by name
  std::vector<std::string> warnings{};
};

/// The traces of the newest run under `path`, which may be what LOCKSTEP_DIR was, the directory of one run,
/// or a single trace. Pointer files are followed on the host that they name. kUnreadable if there are none.
Result<RunTraces> find_run_traces(const std::string& path);

}  // namespace lockstep
