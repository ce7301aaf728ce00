// Function, file and line of native call sites, put into a trace before it leaves the machine that has the
// program.
#pragma once

#include "pack/trace_copy.h"
#include "read/native_sites.h"

namespace lockstep {

/// Adds a kPythonSite record, which holds frames whatever the language, for each call site that has none and
/// that `sites` can resolve.
void add_resolved_sites(TraceCopy& trace, NativeSites& sites);

}  // namespace lockstep
