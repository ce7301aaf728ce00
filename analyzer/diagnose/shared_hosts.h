// Several ranks in one process, driven by one thread: while it stands in a wait for one of them, it issues for none.
#pragma once

#include "diagnose/describe.h"
#include "diagnose/finding.h"
#include "diagnose/wait_graph.h"
#include "replay/replay.h"

namespace lockstep {

/// Makes the finding a deadlock where the ranks of the cause, which make no further call, are driven by the thread that stands in a
/// wait for what these ranks would have to join. Ranks are taken to share a thread where host and pid are equal and the wait names
/// no thread of its own. True where that is so.
bool explain_shared_host(const Describer& describe, const ReplayResult& standstill, const Cause& cause, Finding& finding);

}  // namespace lockstep
