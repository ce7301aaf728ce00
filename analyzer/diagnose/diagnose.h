// From a Job to a Report: match, replay, find the causes, say what to change or what evidence is missing.
#pragma once

#include <optional>

#include "diagnose/finding.h"
#include "diagnose/live.h"
#include "model/job.h"
#include "model/reported.h"

namespace lockstep {

/// Deterministic; reads no clock and no file. O(operations) where all ranks agree.
Report diagnose(const Job& job, const std::optional<Observation>& seen = std::nullopt, const ReportedEvidence& reported = {});

}  // namespace lockstep
