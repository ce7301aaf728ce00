// Ranks that hold a job up without any call that differs: those that come to no further call, and those that do not complete what
// their partners have completed. One finding for all of them, however many groups miss them.
#pragma once

#include <vector>

#include "diagnose/describe.h"
#include "diagnose/draft.h"
#include "diagnose/wait_graph.h"
#include "replay/replay.h"

namespace lockstep {

/// A rank with calls in flight that other members of the group have completed, too many for a late look.
struct LaggingRank {
  ProgramIndex program = kNoProgram;
  CommIndex comm = kNoComm;
  std::uint32_t open = 0;       ///< its first call in flight
  std::uint32_t completed = 0;  ///< so many calls are completed elsewhere
};

/// By rank, each with the group on which it lags most. Only for records that tell completion (torch).
std::vector<LaggingRank> find_lagging_ranks(const Job& job);

/// Replaces the drafts that tell of the stopped ranks one by one, group by group. Does nothing where a call of such a rank
/// differs before its end (that is the cause), and where one draft says it all.
void join_stopped_ranks(const Describer& describe, const ReplayResult& standstill, const std::vector<Cause>& causes,
                        std::vector<Draft>& drafts);

}  // namespace lockstep
