// Changes in calls per communicator, and schedule CSVs told from other files.
#include "cli/call_changes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/schedule_csv.h"
#include "model/job_builder.h"

namespace lockstep {
namespace {

/// Two ranks that make so many all_reduce calls each on "dp".
Job job_of(std::size_t rank0, std::size_t rank1) {
  JobBuilder builder;
  const CommIndex comm = builder.communicator("dp", "dp", std::vector<std::int32_t>{0, 1});
  for (const auto& [rank, calls] : {std::pair{0, rank0}, std::pair{1, rank1}}) {
    OperationTable operations;
    for (std::size_t i = 0; i < calls; ++i) {
      Operation operation;
      operation.kind = OpKind::kAllReduce;
      operation.comm = comm;
      operations.push_back(operation);
    }
    builder.program(rank).operations = std::move(operations);
  }
  return std::move(builder).build();
}

TEST(CallChanges, AreByCommunicatorKindAndRank) {
  CallTotals before;
  before.add(job_of(2, 2), "first");
  before.add(job_of(2, 2), "steady");
  CallTotals after;
  after.add(job_of(2, 3), "first");
  after.add(job_of(2, 3), "steady");
  const auto changes = call_changes(before, after);
  ASSERT_TRUE(changes);
  ASSERT_EQ(changes->size(), 1U);
  EXPECT_EQ(call_changes_text(*changes),
            "changes all_reduce on dp [0,1]: 3 on rank 1, 2 on rank 0; in the base 2 on every rank (first, steady iteration)\n");
  const auto json = call_changes_json(*changes);
  EXPECT_EQ(json[0]["after"]["1"], 3);
  EXPECT_EQ(json[0]["before"]["1"], 2);
  EXPECT_TRUE(call_changes(before, before)->empty());
}

TEST(CallChanges, AppearAndGo) {
  CallTotals calls;
  calls.add(job_of(1, 1), "");
  const auto came = call_changes({}, calls);
  ASSERT_TRUE(came && came->size() == 1);
  EXPECT_TRUE(came->front().before.empty());
  const auto went = call_changes(calls, {});
  ASSERT_TRUE(went && went->size() == 1);
  EXPECT_TRUE(went->front().after.empty());
}

TEST(CallChanges, AreNotSaidOfAPlanAndARun) {
  CallTotals plan;
  plan.add(job_of(1, 1), "steady");
  CallTotals run;
  run.add(job_of(9, 9), "");
  EXPECT_FALSE(call_changes(plan, run));
}

TEST(ScheduleCsv, IsToldByItsFirstAction) {
  for (const char* text : {"0F0,0F1\n", ",,1F0\n", "0UNSHARD,0F0", "\"(0F7;7B3)OVERLAP_F_B\"", "12SEND_F3"})
    EXPECT_TRUE(looks_like_schedule_csv(text)) << text;
  for (const char* text : {"", "{\"schema\": 1}", "rank,op\n0,all_reduce\n", "2024-01-01 10:00 NCCL INFO", "17,18"})
    EXPECT_FALSE(looks_like_schedule_csv(text)) << text;
}

TEST(ScheduleCsv, LettersAreReadOffIt) {
  EXPECT_EQ(schedule_csv_letters("0F0,0BW0"), plan::TorchLetters::kOld);
  EXPECT_EQ(schedule_csv_letters("0F0,0B0,0W0"), plan::TorchLetters::kOld);
  EXPECT_EQ(schedule_csv_letters("0F0,0I0,0W0"), plan::TorchLetters::kNew);
  EXPECT_EQ(schedule_csv_letters("0F0,0B0"), plan::TorchLetters::kNew);
}

}  // namespace
}  // namespace lockstep
