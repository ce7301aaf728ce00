// Random correct jobs. Correct by construction: the generator invents a global order of events, each of which
// can finish on its own once all before it have, and appends to every rank's program its part of each event.
#pragma once

#include <cstdint>

#include "support/sketch.h"

namespace lockstep::testing {

struct RandomJobOptions {
  int max_ranks = 64;
  int max_communicators = 8;
  int max_events = 40;
};

/// The same seed gives the same job on every machine.
JobSketch random_correct_job(std::uint64_t seed, const RandomJobOptions& options = {});

}  // namespace lockstep::testing
