// Joins the Flight Recorder dumps of a job: who the ranks are, which groups are one, and where in each group's sequence of calls
// a dump begins. Facts and the rules' reasons: see the .cc.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "read/flight_dump.h"

namespace lockstep {

std::vector<std::optional<Error>> join_flight_dumps(std::vector<std::unique_ptr<ParsedEvidence>> parsed, JobIntake& intake);

}  // namespace lockstep
