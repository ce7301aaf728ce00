// Whole plans: the founding hang under other names, and its cures.
#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/diagnose.h"
#include "plan/expansion.h"
#include "plan/variance.h"
#include "unit/plan/plan_text.h"

namespace lockstep::plan {
namespace {

Expansion expanded(const std::string& text, Iteration iteration = Iteration::kSteady) {
  auto plan = read_plan(text, "plan");
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
  auto expansion = expand(*plan, iteration);
  EXPECT_TRUE(expansion) << (expansion ? "" : expansion.error().message);
  return *std::move(expansion);
}

/// What varies on the communicator of this name; empty where nothing does.
std::vector<std::string> varying(const Expansion& expansion, std::string_view communicator) {
  std::vector<std::string> texts;
  for (std::uint32_t c = 0; c < expansion.job.communicators().size(); ++c) {
    if (expansion.job.communicator(CommIndex{c}).name != communicator) continue;
    for (const Variance& variance : find_variances(expansion, CommIndex{c})) {
      texts.push_back(variance_text(expansion, variance));
      texts.insert(texts.end(), variance.reasons.begin(), variance.reasons.end());
    }
  }
  return texts;
}

TEST(Expand, AnEmbeddingAloneOnAStageHangsTheNorm) {
  const Expansion expansion = expanded(testing::gpt_plan("type:embed"));
  const Report report = diagnose(expansion.job);
  EXPECT_EQ(report.verdict, Verdict::kDeadlock);
  EXPECT_EQ(
      varying(expansion, "model"),
      (std::vector<std::string>{
          "number of optimizer groups varies by stage: stage 0 has 2, stage 1 has 1",
          "stage 1 holds only the tied Embed, which has no bias and no LayerNorm, so its no-decay group is "
          "empty and dropped"}));
}

TEST(Expand, TheReasonFollowsTheNames) {
  const Expansion expansion = expanded(testing::gpt_plan("type:table", "", "WordTable", "Mixer"));
  const auto texts = varying(expansion, "model");
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_NE(texts[1].find("the tied WordTable"), std::string::npos);
}

TEST(Expand, CuresAreClean) {
  for (const char* method : {"type:block", "type:embed|block", "uniform", "parameters"})
    EXPECT_EQ(diagnose(expanded(testing::gpt_plan(method)).job).verdict, Verdict::kConsistent) << method;
  std::string once = testing::gpt_plan("type:embed");
  once.replace(once.find("\"groups\""), 8, "\"norm\": \"once\", \"groups\"");
  EXPECT_EQ(diagnose(expanded(once).job).verdict, Verdict::kConsistent);
  std::string kept = testing::gpt_plan("type:embed");
  kept.replace(kept.find("\"groups\""), 8, "\"drop_empty\": false, \"groups\"");
  EXPECT_EQ(diagnose(expanded(kept).job).verdict, Verdict::kConsistent);
}

TEST(Expand, ASkippedStepMakesNoNorm) {
  EXPECT_EQ(diagnose(expanded(testing::gpt_plan("type:embed"), Iteration::kSkipped).job).verdict,
            Verdict::kConsistent);
}

TEST(Expand, AFrozenCopyOfATiedWeightIsNamed) {
  std::string text = testing::gpt_plan("uniform");
  const std::size_t last = text.rfind("\"name\": \"w\"");
  text.replace(last, 11, "\"name\": \"w\", \"frozen\": true");
  const Expansion expansion = expanded(text);
  EXPECT_NE(diagnose(expansion.job).verdict, Verdict::kConsistent);
  const auto texts = varying(expansion, "tied.t");
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_NE(texts[0].find("varies by stage: stage 0 has 1, stage 1 has 0"), std::string::npos) << texts[0];
  EXPECT_NE(texts[1].find("w of the Embed is frozen"), std::string::npos) << texts[1];
}

TEST(Expand, TiesAreReducedInOneOrderWhereverTheyStand) {
  std::string layers;
  for (const char* key : {"a", "b", "block", "b", "a"})
    layers += fmt::format(R"({}{{"class": "Embed"{}, "parameters": [{{"name": "w", "shape": [8, 8]}}]}})",
                          layers.empty() ? "" : ", ",
                          std::string_view(key) == "block"
                              ? std::string()
                              : fmt::format(R"(, "tied": "{}", "tied_weights": ["w"])", key));
  const Expansion expansion = expanded(fmt::format(
      R"({{"framework": {{"name": "deepspeed", "version": "0.16.4"}}, "topology": {{"pipe": 2}}, "layers": [{}],
    "partition": {{"method": "uniform"}}, "schedule": {{"micro_batches": 2}}}})",
      layers));
  EXPECT_EQ(diagnose(expansion.job).verdict, Verdict::kConsistent);
}

std::string torch_plan(std::string_view stepper, std::string_view extra) {
  return fmt::format(R"({{"framework": {{"name": "torch"}}, "topology": {{"data": 2}},
    "layers": [{{"class": "Linear", "repeat": 3, "parameters": [{{"name": "weight", "shape": [16, 16]}}, {{"name": "bias", "shape": [16]}}]}}],
    "optimizer": {{"stepper": "{}"}}{}}})",
                     stepper, extra);
}

TEST(Expand, RanksThatUseOtherLayersAreNamed) {
  const std::string unused = R"(, "overrides": [{"where": {"data": 1}, "set": {"unused_layers": [1]}}])";
  const Expansion fsdp = expanded(torch_plan("fsdp2", unused));
  EXPECT_NE(diagnose(fsdp.job).verdict, Verdict::kConsistent);
  ASSERT_FALSE(varying(fsdp, "fsdp").empty());
  EXPECT_NE(varying(fsdp, "fsdp")[0].find("varies by data rank"), std::string::npos);
  EXPECT_NE(diagnose(expanded(torch_plan("ddp", unused)).job).verdict, Verdict::kConsistent);
  EXPECT_EQ(diagnose(expanded(torch_plan("ddp", "")).job).verdict, Verdict::kConsistent);
}

TEST(Expand, AFlagThatIsNotUniformIsNamed) {
  const std::string flag = R"(, "overrides": [{"where": {"rank": 0}, "set": {"find_unused": true}}])";
  for (const Iteration iteration : {Iteration::kFirst, Iteration::kSecond, Iteration::kSteady}) {
    const Expansion expansion = expanded(torch_plan("ddp", flag), iteration);
    EXPECT_NE(diagnose(expansion.job).verdict, Verdict::kConsistent);
    const auto texts = varying(expansion, "dp");
    EXPECT_TRUE(
        std::ranges::find(
            texts, "find_unused_parameters varies by data rank: data rank 0 has 1, data rank 1 has 0") !=
        texts.end());
  }
}

std::string megatron_plan(std::string_view extra_optimizer, std::string_view extra,
                          std::string_view first = "dense") {
  const std::string dense = R"({"name": "w", "shape": [16, 16]})";
  const std::string expert = R"({"name": "e", "shape": [16, 16], "expert": true})";
  const std::string block = fmt::format(R"("parameters": [{}, {}])", dense, expert);
  const std::string swapped = fmt::format(R"("parameters": [{}, {}])", first == "dense" ? dense : expert,
                                          first == "dense" ? expert : dense);
  return fmt::format(
      R"({{"framework": {{"name": "megatron", "version": "0.16.1"}}, "topology": {{"pipe": 2}}, "datatype": "bf16",
    "layers": [{{"class": "Block", {}}}, {{"class": "Block", {}}}], "optimizer": {{"clip_grad": 1.0{}}}, "schedule": {{"micro_batches": 2}}{}}})",
      block, swapped, extra_optimizer, extra);
}

TEST(Expand, OptimizersThatAStageMeetsInAnotherOrderAreAnOrder) {
  const Expansion expansion = expanded(megatron_plan(", \"chained\": true", "", "expert"));
  const Report report = diagnose(expansion.job);
  EXPECT_TRUE(report.verdict == Verdict::kOrder || report.verdict == Verdict::kDeadlock)
      << verdict_name(report.verdict);
  EXPECT_EQ(diagnose(expanded(megatron_plan(", \"chained\": true", "")).job).verdict, Verdict::kConsistent);
  // Without the chain the order is fixed.
  EXPECT_EQ(diagnose(expanded(megatron_plan("", "", "expert")).job).verdict, Verdict::kConsistent);
}

TEST(Expand, BucketCountsThatDifferBetweenStagesAreSilent) {
  std::string text = megatron_plan(", \"bucket_size\": 100, \"stepper\": \"megatron_distributed\"", "");
  const Expansion expansion = expanded(text);
  EXPECT_EQ(diagnose(expansion.job).verdict, Verdict::kConsistent);
}

/// Four layers of 8, 16, 24 and 32 rows on two stages.
std::string four_layers(std::string_view framework, std::string_view schedule, std::string_view more = "") {
  std::string layers;
  for (const int rows : {8, 16, 24, 32})
    layers += fmt::format(R"({}{{"class": "Layer", "parameters": [{{"name": "w", "shape": [{}, 8]}}]}})",
                          layers.empty() ? "" : ", ", rows);
  return fmt::format(R"({{"framework": {{"name": "{}", "version": "2.9.0"}}, "topology": {{"pipe": 2, "data": 2}},
    "layers": [{}], "partition": {{"method": "uniform"}}, "schedule": {{{}}}{}}})", framework, layers, schedule, more);
}

/// Elements that the first stage reduces over its replicas.
std::uint64_t reduced_on_first_stage(const Expansion& expansion, std::string_view family) {
  std::uint64_t elements = 0;
  for (const Operation& operation : expansion.job.program(ProgramIndex{0}).operations)
    if (operation.kind == OpKind::kAllReduce && expansion.job.communicator(operation.comm).name == family)
      elements += std::stoull(expansion.job.count_text(operation.count));
  return elements;
}

TEST(Expand, AStageOfAVHoldsTheFirstAndTheLastLayers) {
  const std::string v = R"("name": "zbv", "virtual_stages": 2, "micro_batches": 4)";
  EXPECT_EQ(reduced_on_first_stage(expanded(four_layers("megatron", v, R"(, "optimizer": {"clip_grad": 0})")), "dp_cp"),
            (8U + 32U) * 8U);
  const std::string loop = R"("name": "zb_vpp", "virtual_stages": 2, "micro_batches": 4)";
  EXPECT_EQ(reduced_on_first_stage(expanded(four_layers("megatron", loop, R"(, "optimizer": {"clip_grad": 0})")), "dp_cp"),
            (8U + 24U) * 8U);
  EXPECT_EQ(reduced_on_first_stage(expanded(four_layers("torch", v)), "dp"), (8U + 32U) * 8U);
  // Both ways each rank holds its own stage and that of its mirror image.
  EXPECT_EQ(reduced_on_first_stage(expanded(four_layers("torch", R"("name": "dualpipe", "micro_batches": 4)")), "dp"),
            (8U + 16U + 24U + 32U) * 8U);
}

TEST(Expand, ShardedLayersAreReducedOnceWhateverTheSchedule) {
  // schedule, layers that the first stage holds
  for (const auto& [schedule, layers] :
       {std::pair(R"("name": "zbv", "virtual_stages": 2, "micro_batches": 4)", 2),
        std::pair(R"("name": "interleaved", "virtual_stages": 2, "micro_batches": 4)", 2),
        std::pair(R"("name": "gpipe", "micro_batches": 4)", 2), std::pair(R"("name": "1f1b", "micro_batches": 4)", 2),
        std::pair(R"("name": "dualpipe", "micro_batches": 4)", 4),
        std::pair(R"("name": "deepseek_dualpipev", "virtual_stages": 2, "micro_batches": 4)", 2)}) {
    const Expansion expansion = expanded(four_layers("torch", schedule, R"(, "optimizer": {"stepper": "fsdp2"})"));
    const auto& operations = expansion.job.program(ProgramIndex{0}).operations;
    EXPECT_EQ(std::ranges::count(operations, OpKind::kReduceScatter, &Operation::kind), layers) << schedule;
    EXPECT_EQ(diagnose(expansion.job).verdict, Verdict::kConsistent) << schedule;
  }
  // Of the two stages of a rank each is gathered by itself.
  const Expansion vee = expanded(four_layers("torch", R"("name": "zbv", "virtual_stages": 2, "micro_batches": 4)",
                                             R"(, "optimizer": {"stepper": "fsdp2"})"));
  EXPECT_EQ(std::ranges::count(vee.job.program(ProgramIndex{0}).operations, OpKind::kAllGather, &Operation::kind), 2);
}

TEST(Expand, DualPipeSendsOnTheDefaultGroup) {
  const Expansion expansion = expanded(four_layers("torch", R"("name": "dualpipe", "micro_batches": 4)"));
  for (const Operation& operation : expansion.job.program(ProgramIndex{0}).operations)
    if (operation.kind == OpKind::kSend) {
      EXPECT_EQ(expansion.job.communicator(operation.comm).name, "world");
    }
  EXPECT_EQ(diagnose(expansion.job).verdict, Verdict::kConsistent);
}

TEST(Expand, SchedulesSayHowManyStagesOfARankTheyTake) {
  const auto error = [](const std::string& text) {
    const auto expansion = expand(*read_plan(text, "plan"), Iteration::kSteady);
    return expansion ? "" : expansion.error().message;
  };
  EXPECT_EQ(error(four_layers("megatron", R"("name": "zb", "virtual_stages": 2)")),
            "$.schedule.virtual_stages: zb has 1 on each rank, not 2");
  EXPECT_EQ(error(four_layers("torch", R"("name": "deepseek_dualpipev", "micro_batches": 4)")),
            "$.schedule.virtual_stages: deepseek_dualpipev has 2 on each rank, not 1");
  EXPECT_NE(error(four_layers("megatron", R"("name": "zb", "micro_batches": 60000)")).find("$.schedule.micro_batches"),
            std::string::npos);
  EXPECT_NE(error(four_layers("deepspeed", R"("name": "zbv", "virtual_stages": 2)")), "");
}

TEST(Expand, AGivenCapHoldsForDdpsFirstBucketSinceTorch25) {
  const auto buckets = [](std::string_view version, std::string_view cap) {
    const std::string text = fmt::format(
        R"({{"framework": {{"name": "torch", "version": "{}"}}, "topology": {{"data": 2}}, "optimizer": {{"clip_grad": 0{}}},
        "layers": [{{"class": "Layer", "repeat": 4, "parameters": [{{"name": "w", "shape": [1024, 300]}}]}}]}})", version, cap);
    const Expansion expansion = expanded(text);
    return std::ranges::count(expansion.job.program(ProgramIndex{0}).operations, OpKind::kAllReduce, &Operation::kind);
  };
  EXPECT_EQ(buckets("2.9.0", R"(, "bucket_cap_mb": 25)"), 1);
  EXPECT_EQ(buckets("2.9.0", ""), 2);
  EXPECT_EQ(buckets("2.3.1", R"(, "bucket_cap_mb": 25)"), 2);
}

std::string zero3_plan(std::string_view zero, std::string_view topology = R"({"data": 8})") {
  return fmt::format(
      R"({{"framework": {{"name": "deepspeed", "version": "0.16.4"}}, "topology": {}, "datatype": "bf16",
    "layers": [{{"class": "Block", "repeat": 2, "parameters": [{{"name": "w", "shape": [9]}}]}},
               {{"class": "Adapter", "parameters": [{{"name": "base", "shape": [64], "frozen": true}}, {{"name": "w", "shape": [8]}}]}}],
    "zero": {{{}}}, "schedule": {{"micro_batches": 2}}}})",
      topology, zero);
}

std::vector<std::string> calls_of(const Expansion& expansion, std::int32_t rank, OpKind kind) {
  std::vector<std::string> calls;
  const Program& program = expansion.job.program(expansion.job.program_of_rank(rank));
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const Operation& operation = program.operations[i];
    if (operation.kind != kind) continue;
    const Communicator& communicator = expansion.job.communicator(operation.comm);
    calls.push_back(fmt::format("{} [{}-{}] {}", communicator.name, communicator.members.front(), communicator.members.back(),
                                operation.count.number()));
  }
  return calls;
}

/// Parameters of 9 elements on 8 ranks are parts of 2, and of 2 x 4 among the 2 that share a copy.
TEST(Expand, SecondCopiesOfParametersAreGatheredWithinTheirGroups) {
  const std::string text = zero3_plan(R"("stage": 3, "zero_hpz_partition_size": 2)");
  const std::vector<std::string> forward = {"data [0-7] 2", "data [0-7] 2", "data [0-7] 9"};
  const std::vector<std::string> again = {"hpz [4-5] 8", "hpz [4-5] 8", "hpz [4-5] 36"};
  std::vector<std::string> expected = forward;
  for (const bool backward : {true, false, true}) {
    if (backward)
      expected.insert(expected.end(), again.rbegin(), again.rend());
    else
      expected.insert(expected.end(), again.begin(), again.end());
  }
  const Expansion first = expanded(text, Iteration::kFirst);
  EXPECT_EQ(calls_of(first, 4, OpKind::kAllGather), expected);
  EXPECT_EQ(diagnose(first.job).verdict, Verdict::kConsistent);
  // The copy of what is not trained outlives the step.
  expected[2] = "hpz [4-5] 32";
  expected.insert(expected.begin() + 3, "data [0-7] 1");
  EXPECT_EQ(calls_of(expanded(text, Iteration::kSteady), 4, OpKind::kAllGather), expected);
  for (const std::string& call : calls_of(first, 4, OpKind::kReduceScatter)) EXPECT_TRUE(call.starts_with("data [0-7]")) << call;
}

TEST(Expand, SecondCopiesThatDeepSpeedOrAPlanCannotMakeAreRefused) {
  const auto problem = [](const std::string& text) {
    const auto plan = read_plan(text, "p");
    return plan ? std::string() : plan.error().message;
  };
  EXPECT_EQ(problem(zero3_plan(R"("stage": 2, "zero_hpz_partition_size": 2)")), "p: $.zero.zero_hpz_partition_size: needs $.zero.stage 3");
  EXPECT_EQ(problem(zero3_plan(R"("stage": 3, "zero_hpz_partition_size": 3)")),
            "p: $.zero.zero_hpz_partition_size: DeepSpeed refuses this: 8 ranks are not divisible by 3");
  EXPECT_NE(problem(zero3_plan(R"("stage": 3, "zero_hpz_partition_size": 2)", R"({"data": 4, "tensor": 2})")).find("consecutive ranks"),
            std::string::npos);
  EXPECT_EQ(problem(zero3_plan(R"("stage": 3, "zero_hpz_partition_size": 1, "mics_shard_size": -1)")), "");
  EXPECT_EQ(problem(zero3_plan(R"("stage": 3, "zero_hpz_partition_size": 0)")), "");
}

/// PipelineEngine.eval_batch: no backward pass, no step, a barrier of all before it.
TEST(Expand, InferenceOfDeepSpeedPassesActivationsOnly) {
  std::string text = testing::gpt_plan("type:embed");  // what hangs in training
  text.replace(text.find("\"micro_batches\""), 15, "\"name\": \"inference\", \"micro_batches\"");
  for (const Iteration iteration : {Iteration::kFirst, Iteration::kSteady}) {
    const Expansion expansion = expanded(text, iteration);
    EXPECT_EQ(diagnose(expansion.job).verdict, Verdict::kConsistent);
    for (const std::int32_t rank : {0, 1}) {
      EXPECT_EQ(calls_of(expansion, rank, OpKind::kBarrier).size(), 1U);
      EXPECT_TRUE(calls_of(expansion, rank, OpKind::kAllReduce).empty());
      EXPECT_EQ(calls_of(expansion, rank, OpKind::kBroadcast).size(), 1U);
      const std::size_t messages = iteration == Iteration::kFirst ? 4 : 3;
      EXPECT_EQ(calls_of(expansion, rank, rank == 0 ? OpKind::kSend : OpKind::kRecv).size(), messages);
      EXPECT_TRUE(calls_of(expansion, rank, rank == 0 ? OpKind::kRecv : OpKind::kSend).empty());
    }
  }
}

/// Only where gradients are added up in FP32 does BF16_Optimizer do ZeRO-1, which the plan then says.
TEST(Expand, Bf16WithAZeroStageReducesNormsByGroup) {
  std::string text = testing::gpt_plan("type:embed");
  text.replace(text.find("\"f16\""), 5, "\"bf16\"");
  EXPECT_EQ(diagnose(expanded(text).job).verdict, Verdict::kDeadlock);
  text.replace(text.find("\"groups\""), 8, "\"stepper\": \"bf16\", \"groups\"");
  EXPECT_EQ(diagnose(expanded(text).job).verdict, Verdict::kConsistent);
}

}  // namespace
}  // namespace lockstep::plan
