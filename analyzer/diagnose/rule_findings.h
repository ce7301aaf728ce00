// Findings of rules that are not about one call against another at one position: per-member counts, NCCL groups, threads,
// and the ranks given at initialisation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "diagnose/describe.h"
#include "diagnose/draft.h"
#include "match/match.h"

namespace lockstep {

std::vector<Draft> rule_drafts(const Describer& describe);

/// The call of a rank at a position of the communicator; nothing where it makes none.
std::optional<std::uint32_t> call_at(const Describer& describe, ProgramIndex program, CommIndex comm, std::uint32_t seq);

/// The ranks that take part in every pair are to blame, where there are several pairs; else all that take part in one. Sorted.
std::vector<std::int32_t> common_ranks(const std::vector<VectorDifference>& pairs);

}  // namespace lockstep
