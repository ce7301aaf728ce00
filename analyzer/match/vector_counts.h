// Collectives with per-member counts: what one member sends must be what the other expects from it. MPI 3.1, 5.5 to 5.8; torch's
// splits and NCCL's grouped messages follow the same rule.
#pragma once

#include "match/match.h"
#include "match/sequences.h"
#include "model/job.h"

namespace lockstep {

/// Calls whose counts are compared pairwise where they are given: all_to_all_v, gather_v, scatter_v.
constexpr bool has_pairwise_counts(OpKind kind) {
  return kind == OpKind::kAllToAllV || kind == OpKind::kGatherV || kind == OpKind::kScatterV;
}

/// Sets vector_differences of the communicator to the pairs that do not fit at the first position that has one, and
/// first_difference where none stands before it. A list of another length than the communicator, and counts that are not
/// given, prove nothing.
void compare_vectors(const Job& job, const CallSequences& sequences, CommunicatorMatch& communicator);

}  // namespace lockstep
