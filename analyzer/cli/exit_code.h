// What a report means for a script.
#pragma once

#include "cli/subcommand.h"
#include "diagnose/finding.h"

namespace lockstep {

/// 1 for a finding at or above `fail_on` and for an earlier cause, 5 where the evidence does not decide, else
/// 0.
ExitCode exit_code(const Report& report, Severity fail_on);

}  // namespace lockstep
