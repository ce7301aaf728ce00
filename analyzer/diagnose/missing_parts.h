// An all_to_all that is written as grouped messages (as torch does it on NCCL) leaves messages of no elements out: one that is
// missing is another size, not another number of calls.
#pragma once

#include <vector>

#include "diagnose/describe.h"
#include "diagnose/draft.h"

namespace lockstep {

/// Makes one finding of the messages without a partner that belong to exchanges of all members of a communicator: at least two
/// ranks issue a group in which they send to, and receive from, every other of three or more members. Takes them out of `drafts`.
void join_missing_parts(const Describer& describe, std::vector<Draft>& drafts);

}  // namespace lockstep
