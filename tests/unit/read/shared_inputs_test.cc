// The recorded and written cases that lie beside the checkout, each through load_job as a user would pass it.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "read/job_json_writer.h"
#include "read/load.h"
#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

nlohmann::json parse_file(const std::string& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in, nullptr, false);
}

TEST(SharedInputs, EveryRecordedCaseHasTheCallsOfItsIndex) {
  const std::string shared = shared_directory();
  if (shared.empty()) GTEST_SKIP() << "no shared inputs; set LOCKSTEP_SHARED";
  const std::string traces = shared + "/traces/deepspeed_1522";
  const nlohmann::json index = parse_file(traces + "/INDEX.json");
  ASSERT_EQ(index.size(), 15U);
  for (const auto& [name, expected] : index.items()) {
    SCOPED_TRACE(name);
    std::vector<std::string> paths;
    for (const auto& [rank, unused] : expected["ranks"].items()) paths.push_back(fmt::format("{}/{}.rank{}.jsonl", traces, name, rank));
    const auto job = load_job(paths);
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(all_warnings(*job), "");
    EXPECT_TRUE(job->quality().complete);
    ASSERT_EQ(job->programs().size(), expected["ranks"].size());
    for (const Program& program : job->programs()) {
      const nlohmann::json& rank = expected["ranks"][std::to_string(program.rank)];
      EXPECT_EQ(program.operations.size(), rank["calls"].get<std::size_t>());
      EXPECT_FALSE(program.tail_missing);
      if (rank["blocked_in"].is_null()) continue;
      const Operation& last = program.operations.back();
      EXPECT_EQ(op_name(last.kind), rank["blocked_in"]["op"].get<std::string>());
      EXPECT_EQ(job->communicator(last.comm).name, rank["blocked_in"]["group"].get<std::string>());
      EXPECT_EQ(job->communicator(last.comm).members, rank["blocked_in"]["ranks"].get<std::vector<std::int32_t>>());
      EXPECT_EQ(last.state, OpState::kEntered);
      EXPECT_EQ(program.end.kind, EndKind::kUnknown);
    }
    const std::string text = to_job_json(*job);
    const auto again = read_text(text);
    ASSERT_TRUE(again);
    EXPECT_EQ(to_job_json(*again), text);
  }
}

TEST(SharedInputs, EveryNegativePlanIsReadWithoutAWord) {
  const std::string shared = shared_directory();
  if (shared.empty()) GTEST_SKIP() << "no shared inputs; set LOCKSTEP_SHARED";
  const nlohmann::json plans = parse_file(shared + "/golden/negative_plans.json");
  ASSERT_FALSE(plans["mutants"].empty());
  const TempDir dir;
  for (const nlohmann::json& plan : plans["mutants"]) {
    SCOPED_TRACE(plan["name"].get<std::string>());
    const nlohmann::json entry = {{"groups", plan["groups"]}, {"ranks", plan["ranks"]}};
    const auto job = load_job(std::vector<std::string>{dir.write("plan", entry.dump())});
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(all_warnings(*job), "");
    EXPECT_EQ(job->programs().size(), plan["ranks"].size());
    for (const Program& program : job->programs()) {
      EXPECT_FALSE(program.tail_missing);
      EXPECT_EQ(program.end, (ProgramEnd{EndKind::kExited, 0}));
    }
  }
}

TEST(SharedInputs, EveryCaseOfADirectoryIsReadAtOnce) {
  const std::string shared = shared_directory();
  if (shared.empty()) GTEST_SKIP() << "no shared inputs; set LOCKSTEP_SHARED";
  const auto job = load_job(std::vector<std::string>{shared + "/traces/deepspeed_1522"});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->programs().size(), 2U);
  EXPECT_TRUE(has_warning(*job, "hold different records of rank 0")) << "15 runs in one directory";
}

}  // namespace
}  // namespace lockstep
