// What the lines of logs prove, make likely or leave open, as findings.
#pragma once

#include <vector>

#include "diagnose/draft.h"
#include "model/job.h"
#include "model/reported.h"

namespace lockstep {

/// Findings from logs alone, cause first; the rules and their reasons stand in the .cc. `decided`: the calls of the job have
/// decided already, so that only events that explain them are added.
std::vector<Draft> reported_drafts(const ReportedEvidence& reported, const Job& job, bool decided);

}  // namespace lockstep
