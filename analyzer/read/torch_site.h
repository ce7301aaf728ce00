// Call sites of a process that runs torch: torch's own frames around a call say how it came about, not who
// made it.
#pragma once

#include <vector>

#include "model/job.h"

namespace lockstep {

/// Takes torch's frames off the inner end. What they say stands in a last frame without a file
/// (model/via_frame.h): "all_reduce" for a plain call, "DistributedDataParallel bucket 2" or
/// "ZeroRedundancyOptimizer.step" for a call that torch makes by itself. Where no other frame is
/// left, all stay. `frames` are innermost first; one of torch's C++ has a function and no file.
CallSite torch_site(std::vector<Frame> frames);

}  // namespace lockstep
