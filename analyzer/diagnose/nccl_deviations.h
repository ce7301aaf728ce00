// What NCCL makes of members whose calls differ: it keeps launches, meetings of hosts and calls of no elements apart
// (match/nccl_meetings.h), so that some differences break its contract and still let the run end.
#pragma once

#include <vector>

#include "diagnose/describe.h"
#include "diagnose/difference.h"
#include "diagnose/finding.h"
#include "replay/replay.h"

namespace lockstep {

/// Differences in calls of no elements hold nobody: where there are others beside them, those come first and by themselves.
std::vector<Deviation> told_apart(const Describer& describe, const CommunicatorDifference& difference, const Deviation& deviation);

/// Lowers a `certain` finding to `contract_violation` where NCCL's rules let the run end all the same, and says why. True: the
/// difference is in calls of no elements alone, which hold nobody.
bool apply_nccl_leniency(const Describer& describe, const CommunicatorDifference& difference, const Deviation& deviation,
                         const ReplayResult& standstill, Finding& finding);

}  // namespace lockstep
