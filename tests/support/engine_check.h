// Compares what match and replay say about one job with what the oracle says.
#pragma once

#include <string>

#include "model/job.h"

namespace lockstep::testing {

/// "" where they agree about everything: per communicator whether and where the members first differ and how
/// many calls each makes, per channel likewise, and for every blocking model which ranks stand still. Else
/// the first disagreement.
std::string engine_against_oracle(const Job& job);

/// "" where diagnose says `consistent` exactly where the oracle does not call the job wrong. The ranks must
/// have ended.
std::string diagnosis_against_oracle(const Job& job);

}  // namespace lockstep::testing
