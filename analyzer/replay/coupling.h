// Which launches complete only together in the `coupled` model: those connected by messages of their batches.
#pragma once

#include <cstdint>
#include <vector>

#include "match/match.h"
#include "model/job.h"

namespace lockstep {

struct Coupling {
  /// component[p][i] of the i-th point-to-point operation of program p; kNone where nothing decides its partner.
  std::vector<std::vector<std::uint32_t>> component{};
  /// launches[c] that must have started before component c completes; one too many where a message has no partner.
  std::vector<std::uint32_t> launches{};
  static constexpr std::uint32_t kNone = 0xffffffff;
};

/// `trust_completion`: a message known to have completed needs no partner.
Coupling couple_batches(const Job& job, const MatchResult& match, bool trust_completion);

}  // namespace lockstep
