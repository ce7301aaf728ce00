// The JSON report; that it follows the schema is tests/report_schema_test.py.
#include "report/json.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/tool.h"
#include "support/sample_reports.h"

namespace lockstep {
namespace {

using nlohmann::json;

TEST(ReportJson, CarriesTheContract) {
  const json report = json::parse(report_json(deadlock_report()));
  EXPECT_EQ(report["schema"], "lockstep-report/1");
  EXPECT_EQ(report["tool"], tool_name());
  EXPECT_EQ(report["verdict"], "deadlock");
  const json& finding = report["findings"][0];
  EXPECT_EQ(finding["class"], "count_differs_by_local_state");
  EXPECT_EQ(finding["communicator"], (json{{"id", "G2"}, {"name", "model"}, {"ranks", {0, 1}}}));
  EXPECT_EQ(finding["position"]["native_seq"], 55);
  EXPECT_EQ(finding["counts"][0]["by_rank"], (json{{"0", 4}, {"1", 3}}));
  EXPECT_EQ(finding["wait_for"][1]["operation"]["op"], "broadcast");
  EXPECT_EQ(finding["evidence"][0], (json{{"file", "run.rank0.jsonl"}, {"line", 55}}));
  EXPECT_EQ(report["suspects"][0]["host"], "n1");
  EXPECT_EQ(report["suspects"][1]["host"], nullptr);
  EXPECT_EQ(report["progress"], (json{{"state", "stalled"}, {"stalled_for_s", 8.5}}));
}

TEST(ReportJson, WritesNullForWhatIsNotKnown) {
  const json report = json::parse(report_json(consistent_report()));
  EXPECT_EQ(report["findings"][0]["communicator"], nullptr);
  EXPECT_EQ(report["findings"][0]["position"], nullptr);
  EXPECT_EQ(report["findings"][0]["divergent_meaning"], nullptr);
  EXPECT_EQ(report["findings"][0]["evidence"][0]["line"], nullptr);
}

TEST(ReportJson, HasNoOperationForARankThatStandsInNone) {
  const json report = json::parse(report_json(large_imbalance_report()));
  EXPECT_EQ(report["findings"][0]["wait_for"][0]["operation"], nullptr);
  EXPECT_EQ(report["findings"][0]["wait_for"][0]["why"], "exited with status 0");
}

TEST(ReportJson, IsPrintableAsciiWhateverTheInputs) {
  const std::string text = report_json(hostile_report());
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  EXPECT_FALSE(json::parse(text, nullptr, false).is_discarded());
}

}  // namespace
}  // namespace lockstep
