// One random job, and the same job with a fault that the oracle calls wrong: the trial that tests and
// benchmark share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "support/fault.h"
#include "support/judge.h"
#include "support/random_job.h"
#include "support/sketch.h"

namespace lockstep::testing {

/// "" where the engine finds nothing above `unsafe` in a correct job: as a plan, as the record of a finished
/// run, and in a snapshot of a run that goes on; else what it accuses and in which of the three.
std::string false_accusation(const JobSketch& correct, std::uint64_t seed);

struct FaultedJob {
  JobSketch job{};
  Fault fault{};
  std::string reason{};  ///< why the oracle calls it wrong
};
/// Draws faults for the correct job until the oracle calls one wrong; nothing where none of 100 draws is.
std::optional<FaultedJob> draw_wrong_job(const JobSketch& correct, std::uint64_t seed);

}  // namespace lockstep::testing
