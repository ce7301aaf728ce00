// The report of a gate: on a plan with all its iterations and its own reasons for what differs, on a schedule CSV, or
// on a run.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "cli/call_changes.h"
#include "diagnose/finding.h"

namespace lockstep {

/// One plan, one schedule CSV of torch.distributed.pipelining, or the inputs of one run as load_evidence() takes them.
/// Adds the calls to `totals` where it is given. `all_ranks`: also those of a plan that others are shown to stand for.
Result<Report> gate_report(std::span<const std::string> inputs, CallTotals* totals = nullptr, bool all_ranks = false);

}  // namespace lockstep
