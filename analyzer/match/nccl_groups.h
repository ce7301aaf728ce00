// What NCCL does with the collectives of one group: it launches them in an order of its own (src/enqueue.cc of 2.30: by size,
// largest first, then by function, operation and type), so that another order inside a group is repaired, while other
// group boundaries are not.
#pragma once

#include "match/match.h"
#include "match/sequences.h"
#include "model/job.h"

namespace lockstep {

/// Fills `repaired` and `partition_difference` of a communicator whose members' calls or groups differ. Positions that are
/// repaired are taken out of `blocking`.
void apply_group_rules(const Job& job, const CallSequences& sequences, CommunicatorMatch& communicator);

}  // namespace lockstep
