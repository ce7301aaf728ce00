// Findings about ranks that wait for each other.
#pragma once

#include "diagnose/describe.h"
#include "diagnose/finding.h"
#include "diagnose/wait_graph.h"
#include "replay/replay.h"

namespace lockstep {

/// A wait-for cycle: an order between communicators or messages, or, where records end at the hang and there is a sign for
/// it, a number of calls that differs. (Differences between whole records are proof; see adopt_difference.)
Finding cycle_finding(const Describer& describe, const ReplayResult& replay, const Cause& cause);

}  // namespace lockstep
