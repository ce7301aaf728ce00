// What a job that comes to its end would stall on under a stricter reading: other blocking models, groups as they are written,
// completion that an unlucky run would not have had.
#pragma once

#include <optional>
#include <span>

#include "diagnose/describe.h"
#include "diagnose/finding.h"
#include "replay/model_replays.h"
#include "replay/replay.h"

namespace lockstep {

/// The first such cycle. `models`: those that are told apart for the job; it is known to come to its end under the first.
std::optional<Finding> model_finding(const Describer& describe, std::span<const BlockingModel> models, ModelReplays& replays);

}  // namespace lockstep
