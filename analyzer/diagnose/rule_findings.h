// Findings of rules that are not about one call against another at one position: per-member counts, NCCL groups, threads,
// the ranks given at initialisation, and calls that the library refused.
#pragma once

#include <vector>

#include "diagnose/describe.h"
#include "diagnose/draft.h"

namespace lockstep {

std::vector<Draft> rule_drafts(const Describer& describe);

/// Says of a rank that lacks a call that it made the call and the library refused it. True where that is so.
bool explain_refused_call(const Describer& describe, Draft& draft);

}  // namespace lockstep
