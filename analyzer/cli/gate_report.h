// The report on a plan: all its iterations, with the plan's own reasons for what differs.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "diagnose/finding.h"

namespace lockstep {

/// One plan, or the inputs of one run as load_job() takes them.
Result<Report> gate_report(std::span<const std::string> inputs);

}  // namespace lockstep
