// The wrong programs that public bug reports describe, and the same programs with the fault taken out.
#include <map>
#include <nlohmann/json.hpp>

#include "diagnose/diagnose.h"
#include "support/job_text.h"
#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

Json plans() {
  std::ifstream file(shared_directory() + "/golden/negative_plans.json");
  return Json::parse(file)["mutants"];
}

Report check(const Json& groups, const Json& ranks) {
  const Json job = {{"groups", groups}, {"ranks", ranks}};
  return diagnose(testing::job_from_json(job.dump()));
}

TEST(NegativePlans, GetAnAcceptedVerdict) {
  if (shared_directory().empty()) GTEST_SKIP() << "no shared inputs; set LOCKSTEP_SHARED";
  for (const Json& plan : plans()) {
    SCOPED_TRACE(plan["name"].get<std::string>());
    const Report report = check(plan["groups"], plan["ranks"]);
    const auto accepted = plan["accept"].get<std::vector<std::string>>();
    EXPECT_NE(std::ranges::find(accepted, verdict_name(report.verdict)), accepted.end()) << verdict_name(report.verdict);
    if (!plan.contains("potential_model")) continue;
    ASSERT_EQ(report.findings.size(), 1U);
    EXPECT_EQ(severity_name(report.findings[0].severity), "potential");
    EXPECT_EQ(report.findings[0].models, std::vector<std::string>{plan["potential_model"].get<std::string>()});
  }
}

/// Where all members of the groups are to make the same calls, the fault is gone when they make those of the first rank that
/// makes any. The others need their own repair.
Json repaired(const Json& plan) {
  static const std::map<std::string, Json> kOwn = {
      {"interleaved_pp2_batched_payload_swap",
       {{"0", {"batch[send 1 act:0.2; recv 1 grad:0.0]"}}, {"1", {"batch[recv 0 act:0.2; send 0 grad:0.0]"}}}},
      {"skip_connection_batch",
       {{"0", {"batch[send 1]", "batch[send 2]"}}, {"1", {"batch[recv 0]", "batch[send 2]"}}, {"2", {"batch[recv 0]", "batch[recv 1]"}}}},
      {"pipeline_stage_input_args_on_some_stages", {{"0", {"send 1 object"}}, {"1", {"recv 0 object"}}}}};
  if (const auto own = kOwn.find(plan["name"].get<std::string>()); own != kOwn.end()) return own->second;
  Json calls = Json::array();
  for (const auto& [rank, lines] : plan["ranks"].items()) {
    if (calls.empty()) calls = lines;
  }
  Json ranks = plan["ranks"];
  for (const auto& [rank, lines] : plan["ranks"].items()) ranks[rank] = calls;
  return ranks;
}

TEST(NegativePlans, AreConsistentOnceRepaired) {
  if (shared_directory().empty()) GTEST_SKIP() << "no shared inputs; set LOCKSTEP_SHARED";
  for (const Json& plan : plans()) {
    SCOPED_TRACE(plan["name"].get<std::string>());
    const Report report = check(plan["groups"], repaired(plan));
    EXPECT_EQ(verdict_name(report.verdict), "consistent");
    EXPECT_TRUE(report.findings.empty()) << report.findings.front().title;
  }
}

}  // namespace
}  // namespace lockstep
