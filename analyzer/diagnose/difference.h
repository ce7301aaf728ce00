// How the calls of the members of one communicator differ: who makes up the majority, who deviates from it, by which
// calls. Deviation is found here; whether it stalls the job is for others.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "match/align.h"
#include "match/match.h"
#include "match/sequences.h"
#include "model/job.h"

namespace lockstep {

/// One of the ways in which members call, told by its longest record.
struct Variant {
  std::size_t longest = 0;  ///< index into CallSequences of the member with that record
  bool open_end = false;    ///< more calls may follow: no member that called so is known to have ended there
};

/// How some members differ from the reference. A member whose record ends before the difference is on neither side: it has
/// not come so far.
struct Deviation {
  std::size_t variant = 0;                ///< index into CommunicatorDifference::variants; never the reference
  Alignment alignment{};                  ///< against the reference
  std::vector<ProgramIndex> deviating{};  ///< by rank
  std::vector<ProgramIndex> conforming{}; ///< those that called as the reference where these did not; by rank
  bool has_majority = false;              ///< the conforming are more than half of the members that are on a side
};

struct CommunicatorDifference {
  CommIndex comm = kNoComm;
  CallSequences sequences{};
  std::vector<Variant> variants{};  ///< the reference first
  std::vector<Deviation> deviations{};
};

/// True where nothing more can follow the record of this program: it ended, and its record is whole.
bool is_closed(const Program& program);

/// No call can follow the record: it is closed, or stands in MPI_Finalize, the last call that MPI allows.
bool calls_no_more(const Job& job, const Program& program);

/// Nothing where all members agree as far as their records go.
std::optional<CommunicatorDifference> find_difference(const Job& job, CallSequences sequences);

}  // namespace lockstep
