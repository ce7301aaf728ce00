// The calls of every recorded member on one communicator as lists of positions: the slow path, for communicators that
// do not agree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "match/match.h"
#include "model/job.h"

namespace lockstep {

/// operations[m][i] = index in the program of `members[m]` of its call number `first` + i on the communicator.
struct CallSequences {
  CommIndex comm = kNoComm;
  std::uint32_t first = 0;  ///< CommunicatorMatch::first_position
  std::vector<ProgramIndex> members{};
  std::vector<std::vector<std::uint32_t>> operations{};
};

/// The sequences of the communicators asked for, in that order; one pass over the programs of their members.
std::vector<CallSequences> collect_sequences(const Job& job, const MatchResult& match,
                                             std::span<const CommIndex> communicators);

/// Sets first_difference and blocking of a communicator from its sequences.
void find_first_differences(const Job& job, const CallSequences& sequences, CommunicatorMatch& communicator);

}  // namespace lockstep
