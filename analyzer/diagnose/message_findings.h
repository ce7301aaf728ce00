// Findings about point-to-point calls: pairs that do not fit, and messages without a partner.
#pragma once

#include <vector>

#include "diagnose/describe.h"
#include "diagnose/draft.h"

namespace lockstep {

/// One per channel at most, its earliest. A missing partner is claimed only where the rank that lacks it has
/// ended and its record is whole.
std::vector<Draft> message_drafts(const Describer& describe);

}  // namespace lockstep
