// Random correct NCCL programs: several communicators and streams, groups of collectives and messages, rings, splits, host waits.
// Correct by construction: the generator invents a global order of events, each of which can finish once all before it have.
#pragma once

#include <cstdint>

#include "support/sketch.h"

namespace lockstep::testing {

/// The same seed gives the same job on every machine.
JobSketch random_nccl_job(std::uint64_t seed);

}  // namespace lockstep::testing
