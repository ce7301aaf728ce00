// What keeps a job without a deciding finding from being called consistent: ranks without a record, records that are cut, ranks that
// were killed or had not ended, calls that cannot be decided.
#pragma once

#include <span>
#include <vector>

#include "diagnose/describe.h"
#include "diagnose/draft.h"

namespace lockstep {

/// Notes only. `found`: what is told already. `finished`: replay of all programs comes to its end; `advancing`: two looks at a live
/// job saw it move.
std::vector<Finding> open_questions(const Describer& describe, bool finished, bool advancing, std::span<const Draft> found);

}  // namespace lockstep
