// Exit codes are a contract with scripts.
#include "cli/exit_code.h"

#include <gtest/gtest.h>

#include "support/sample_reports.h"

namespace lockstep {
namespace {

TEST(ExitCodeOf, FollowsVerdictAndThreshold) {
  EXPECT_EQ(exit_code(deadlock_report(), Severity::kContractViolation), kExitFindings);
  EXPECT_EQ(exit_code(size_report(), Severity::kCertain), kExitConsistent);
  EXPECT_EQ(exit_code(consistent_report(), Severity::kContractViolation), kExitConsistent);
  EXPECT_EQ(exit_code(consistent_report(), Severity::kUnsafe), kExitFindings);
  EXPECT_EQ(exit_code(other_cause_report(), Severity::kCertain), kExitFindings);
}

TEST(ExitCodeOf, SaysWhenTheEvidenceDoesNotDecide) {
  Report report;
  report.verdict = Verdict::kInsufficient;
  EXPECT_EQ(exit_code(report, Severity::kContractViolation), kExitInsufficient);
  report.findings = {{.verdict = Verdict::kInsufficient, .finding_class = "evidence_missing"}};
  EXPECT_EQ(exit_code(report, Severity::kNote), kExitInsufficient);
}

}  // namespace
}  // namespace lockstep
