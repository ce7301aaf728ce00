// How often each rank made which call, and from where: what tells a loop that runs longer from a call that is skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/describe.h"
#include "diagnose/finding.h"

namespace lockstep {

/// Calls of every recorded member on a communicator.
CallCounts communicator_counts(const Describer& describe, CommIndex comm);

/// Calls that `program` made on `comm` like operation `like` of `like_program`: from the same call site where it is known,
/// else with the same signature.
std::uint32_t count_like(const Describer& describe, ProgramIndex program, CommIndex comm, ProgramIndex like_program,
                         std::uint32_t like);

/// Per call site of the communicator on which the two ranks differ: calls by rank, most different first.
std::vector<CallCounts> differing_site_counts(const Describer& describe, CommIndex comm, ProgramIndex a, ProgramIndex b);

/// A call that the same function makes elsewhere, as often on each of the two ranks as the call at hand: the sign of a loop
/// around both.
struct LoopWitness {
  SiteIndex site{};
  std::string function{};
  OpKind kind = OpKind::kUnknown;
  CommIndex comm_a = kNoComm;  ///< where rank a and rank b made it; may be communicators of their own
  CommIndex comm_b = kNoComm;
  std::uint32_t count_a = 0;
  std::uint32_t count_b = 0;
};
std::optional<LoopWitness> find_loop_witness(const Describer& describe, ProgramIndex a, ProgramIndex b, SiteIndex site,
                                             std::uint32_t count_a, std::uint32_t count_b);

/// Calls between operation `index` and the one like it before, on the same communicator; nothing where it is the first.
std::optional<std::uint32_t> gap_to_previous(const Describer& describe, ProgramIndex program, std::uint32_t index);

}  // namespace lockstep
