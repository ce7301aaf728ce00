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

/// Members whose records agree with each other as far as they go.
struct Variant {
  std::vector<ProgramIndex> members{};  ///< by rank
  std::size_t longest = 0;              ///< index into CallSequences of the member that made most calls
  bool open_end = false;                ///< that member may make more calls than recorded
};

/// One way of deviating: the members that share it, and what distinguishes them from the reference.
struct Deviation {
  std::vector<std::size_t> variants{};   ///< indices into CommunicatorDifference::variants
  Alignment alignment{};                 ///< of the first of them against the reference variant
};

struct CommunicatorDifference {
  CommIndex comm = kNoComm;
  CallSequences sequences{};
  std::vector<Variant> variants{};  ///< largest first
  bool has_majority = false;        ///< variants[0] holds more than half of the members
  std::vector<Deviation> deviations{};
};

/// True where nothing more can follow the record of this program: it ended, and its record is whole.
bool is_closed(const Program& program);

/// Nothing where all members agree as far as their records go.
std::optional<CommunicatorDifference> find_difference(const Job& job, CallSequences sequences);

}  // namespace lockstep
