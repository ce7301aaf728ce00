// What became of the process that wrote a trace: from the file, and from this machine where it ran here.
#pragma once

#include "model/job.h"
#include "read/trace_tables.h"

namespace lockstep {

/// Whether the process is on this host and still there. False where nothing tells.
bool is_alive(const TraceTables& tables);

/// kRunning only where is_alive(); kUnknown for a process that was killed or left by _exit: the trace cannot tell.
ProgramEnd end_of_process(const TraceTables& tables);

}  // namespace lockstep
