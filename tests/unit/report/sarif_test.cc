// SARIF of a finding that is seen in more places than the services take.
#include "report/sarif.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

using Json = nlohmann::json;

/// Seen once in the record of each of so many ranks, from this line on.
Report seen_by(std::uint32_t ranks, std::uint32_t first_line) {
  Report report;
  report.verdict = Verdict::kImbalance;
  Finding& finding = report.findings.emplace_back();
  finding.verdict = Verdict::kImbalance;
  finding.finding_class = "missing_call";
  finding.severity = Severity::kCertain;
  finding.title = "ranks wait";
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    finding.evidence.push_back({"run/rank" + std::to_string(rank) + ".jsonl", first_line + rank});
  return report;
}

Json result_of(const Report& report) { return Json::parse(report_sarif(report))["runs"][0]["results"][0]; }

TEST(ReportSarif, GivesTheFirstHundredPlaces) {
  const Json result = result_of(seen_by(4096, 7));
  ASSERT_EQ(result["locations"].size(), 100U);
  for (std::size_t i = 0; i < 100; ++i) {
    const Json& place = result["locations"][i]["physicalLocation"];
    EXPECT_EQ(place["artifactLocation"]["uri"], "run/rank" + std::to_string(i) + ".jsonl");
    EXPECT_EQ(place["region"]["startLine"], 7 + i);
  }
  EXPECT_EQ(result_of(seen_by(100, 7))["locations"].size(), 100U);
  EXPECT_EQ(result_of(seen_by(3, 7))["locations"].size(), 3U);
  EXPECT_FALSE(result_of(seen_by(0, 7)).contains("locations"));
}

TEST(ReportSarif, KeepsTheFingerprintWhereOtherLinesMove) {
  const auto fingerprint = [](const Report& report) { return result_of(report)["partialFingerprints"]["lockstep/v1"]; };
  const Json first = fingerprint(seen_by(250, 7));
  EXPECT_EQ(fingerprint(seen_by(250, 1000)), first);
  EXPECT_EQ(fingerprint(seen_by(20, 7)), first);
  Report other = seen_by(250, 7);
  other.findings[0].finding_class = "extra_call";
  EXPECT_NE(fingerprint(other), first);
}

}  // namespace
}  // namespace lockstep
