// Findings about ranks that stand still: those that ended or left nothing while others wait, calls that all made and none
// finished. (Cycles: cycle_finding.h.)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/describe.h"
#include "diagnose/difference.h"
#include "diagnose/finding.h"
#include "diagnose/wait_graph.h"
#include "replay/replay.h"

namespace lockstep {

/// Members of a rendezvous that are not at it: job ranks, sorted.
std::vector<std::int32_t> missing_ranks(const Job& job, const StuckGate& stuck);

/// The ranks of a cause and its victims with what each waits for: causes first, victims up to a limit.
void add_wait_for(const Describer& describe, const ReplayResult& replay, const Cause& cause, Finding& finding);

/// A rank that others wait for and that is in no call: it ended, was killed, stands elsewhere, or left no whole record.
Finding absence_finding(const Describer& describe, const ReplayResult& replay, const Cause& cause);

/// Ranks that are seen alive outside any call of their own, while all other members are held in the making of a communicator.
bool never_joins(const Describer& describe, const ReplayResult& replay, const Cause& cause);

/// Calls that every member entered and that the evidence says did not complete: `agreed_but_not_completed` where none of
/// the members came out, `unfinished_snapshot` where some did. Nothing where no call is open.
std::optional<Finding> unfinished_finding(const Describer& describe);

}  // namespace lockstep
