// The report around the findings: verdict, what to do, whom to look at, how good the input was.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/finding.h"
#include "diagnose/live.h"
#include "match/match.h"
#include "model/job.h"
#include "model/reported.h"

namespace lockstep {

/// What a report is made from, beside its findings; all outlive the call.
struct ReportInput {
  const Job& job;
  const MatchResult& match;
  const std::optional<Observation>& seen;
  const ReportedEvidence& reported;
  bool comes_to_its_end = false;  ///< replay of all programs does
};

/// Findings in the order in which they are told, cause first.
Report assemble_report(const ReportInput& input, std::vector<Finding> findings);

}  // namespace lockstep
