// ZeRO with flat groups: what the reference optimizer of examples/zero1_pipeline says of itself.
#include <gtest/gtest.h>

#include "diagnose/diagnose.h"
#include "plan/expansion.h"
#include "unit/plan/plan_text.h"

namespace lockstep::plan {
namespace {

std::string changed(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// Two stages of three replicas; stage 1 of `method` "type:embed" holds the embedding alone.
Job flat_job(std::string_view method, std::string_view zero, std::string_view optimizer) {
  std::string text = testing::gpt_plan(method);
  text = changed(text, "\"pipe\": 2", "\"pipe\": 2, \"data\": 3");
  text = changed(text, "\"stage\": 1", fmt::format("\"stage\": 1, {}", zero));
  text = changed(text, "\"groups\"", fmt::format("{}, \"groups\"", optimizer));
  text = changed(text, "\"micro_batches\"", R"("loss": {"shape": [1], "datatype": "f64"}, "micro_batches")");
  const auto plan = read_plan(text, "plan");
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
  auto expansion = expand(*plan, Iteration::kSteady);
  EXPECT_TRUE(expansion) << (expansion ? "" : expansion.error().message);
  return std::move(expansion->job);
}

/// "all_reduce data f64[2]" of the collectives of a rank, in order.
std::vector<std::string> collectives(const Job& job, std::int32_t rank) {
  std::vector<std::string> lines;
  for (const Operation& operation : job.program(job.program_of_rank(rank)).placed_operations()) {
    if (op_class(operation.kind) != OpClass::kCollective) continue;
    lines.push_back(fmt::format("{} {} {}[{}]", op_name(operation.kind), job.communicator(operation.comm).name,
                                job.datatype(operation.datatype), operation.count.number()));
  }
  return lines;
}

TEST(FlatReduction, IsOneCallForEachGroupThatHasElements) {
  const Job job = flat_job("type:embed", R"("reduction": "flat_all_reduce", "part_alignment": 1)",
                           R"("norm": "vector", "norm_datatype": "f64", "gradient_datatype": "f32", "drop_empty": false)");
  EXPECT_EQ(collectives(job, 0),
            (std::vector<std::string>{"all_reduce tied.t f32[512]", "all_reduce data f32[1536]",
                                      "all_reduce data f32[129]", "all_reduce data u8[1]", "all_reduce model u8[1]",
                                      "all_reduce data f64[2]", "all_reduce model f64[2]", "all_gather data f16[512]",
                                      "all_gather data f16[43]", "broadcast pipe f64[1]"}));
  EXPECT_EQ(collectives(job, 3),  // its group without decay is empty
            (std::vector<std::string>{"all_reduce tied.t f32[512]", "all_reduce data f32[513]", "all_reduce data u8[1]",
                                      "all_reduce model u8[1]", "all_reduce data f64[2]", "all_reduce model f64[2]",
                                      "all_gather data f16[171]", "all_reduce data f64[1]", "broadcast pipe f64[1]"}));
  EXPECT_EQ(diagnose(job).verdict, Verdict::kConsistent);
}

TEST(FlatReduction, ScattersParts) {
  const Job job = flat_job("uniform", R"("reduction": "flat_reduce_scatter")", R"("norm": "once")");
  const auto lines = collectives(job, 0);
  ASSERT_GE(lines.size(), 3U);
  EXPECT_EQ(lines[1], "reduce_scatter data f16[342]");  // 1024 elements in three parts of even size
  EXPECT_EQ(lines[2], "reduce_scatter data f16[22]");
}

TEST(FlatReduction, AVectorOfDroppedGroupsHasUnequalLengths) {
  const Job job = flat_job("type:embed", R"("reduction": "flat_all_reduce")", R"("norm": "vector")");
  const Report report = diagnose(job);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.verdict, Verdict::kMismatch);
  EXPECT_EQ(report.findings[0].finding_class, "size_differs");
}

}  // namespace
}  // namespace lockstep::plan
