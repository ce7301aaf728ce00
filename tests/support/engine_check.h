// Compares what match and replay say about one job with what the oracle says.
#pragma once

#include <string>

#include "model/job.h"
#include "support/sketch.h"

namespace lockstep::testing {

/// "" where they agree about everything: per communicator whether and where the members first differ and how many calls
/// each makes, per channel likewise, and for every blocking model which ranks stand still. Else the first disagreement.
std::string engine_against_oracle(const Job& job);

/// "" where diagnose says `consistent` exactly where the oracle does not call the job wrong. The ranks must have ended.
std::string diagnosis_against_oracle(const Job& job);

/// The job as it would be recorded in a run under `lazy`: calls known to have completed are marked, as are those that
/// their rank was inside. Calls that no rank came to stay as they are, as in a plan that is followed.
JobSketch with_completion(const JobSketch& job);
/// One rank's evidence alone says that all its calls completed.
JobSketch with_completed_rank(const JobSketch& job, std::size_t rank);

}  // namespace lockstep::testing
