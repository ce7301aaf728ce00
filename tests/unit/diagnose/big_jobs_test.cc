// Size: a report about thousands of ranks fits on a screen and names the one that differs.
#include "support/big_jobs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/diagnose.h"
#include "report/text.h"
#include "support/oracle.h"

namespace lockstep::testing {
namespace {

TEST(BigJobs, TheOracleFindsSmallOnesOfTheirKindCorrect) {
  EXPECT_EQ(ask_oracle(three_axes_job(64, 40)).reason, "");
  EXPECT_EQ(ask_oracle(pipeline_job(2, 4, 8, 64)).reason, "");
  EXPECT_EQ(ask_oracle(mixed_job(64, 96)).reason, "");
  EXPECT_TRUE(ask_oracle(outlier_job(64, 40, 7)).imbalance);
}

TEST(BigJobs, AreConsistent) {
  EXPECT_EQ(diagnose(three_axes_job(1024, 100)).verdict, Verdict::kConsistent);
  EXPECT_EQ(diagnose(pipeline_job(16, 8, 16, 200)).verdict, Verdict::kConsistent);
  EXPECT_EQ(diagnose(mixed_job(512, 200)).verdict, Verdict::kConsistent);
}

TEST(BigJobs, OneOutlierOf4096RanksIsNamedOnOneScreen) {
  for (const std::int32_t outlier : {0, 1234, 4095}) {
    const Report report = diagnose(outlier_job(4096, 100, outlier));
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(report.findings.front().divergent_ranks, std::vector<std::int32_t>{outlier});
    const std::string text = report_text(report);
    EXPECT_LE(std::ranges::count(text, '\n'), 24) << text;
    EXPECT_NE(text.find("rank " + std::to_string(outlier)), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace lockstep::testing
