// Which communicator of a Job a line of it makes: those are not made before the first line. job_runner only.
#pragma once

#include <cstddef>
#include <vector>

#include "model/job.h"

namespace lockstep::testing {

/// Communicators that `operation`, a split, shrink or new_group, can make, in their order: those with the members that it gives to the
/// rank of `program`, other than its own. Of a split these are the ranks that give the same colour to the call at this position.
std::vector<CommIndex> can_make(const Job& job, const Program& program, const Operation& operation);

/// Whether a line makes this communicator: an init or grow of it, or a split or new_group with its members that nothing on it precedes.
bool is_made_by_a_line(const Job& job, CommIndex comm);

/// Of what the reader makes of a shrink: the communicator that shrinks.
CommIndex shrunk_from(const Job& job, CommIndex comm);

/// The most new_group lines of a rank: torch's name of a group is how many were made before it.
std::size_t count_new_groups(const Job& job);

}  // namespace lockstep::testing
