// Random plans of every framework that expansion knows.
#pragma once

#include <cstdint>
#include <string>

#include "support/random.h"

namespace lockstep::testing {

struct RandomPlanOptions {
  std::int64_t most_ranks = 512;
  std::int64_t most_micro_batches = 8;
  /// Settings of single ranks, or of ranks along an axis, that may differ from the others': the plan may be wrong.
  bool overrides = false;
};

/// Without overrides a plan that holds: whatever could be missing on a stage is there on each. The framework may still
/// refuse it (micro-batches that do not divide and the like); draw again then.
std::string random_plan(Random& random, const RandomPlanOptions& options = {});

}  // namespace lockstep::testing
