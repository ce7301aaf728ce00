// Bad plans: each names the field.
#include "plan/read_plan.h"

#include <gtest/gtest.h>

#include "plan/expansion.h"
#include "unit/plan/plan_text.h"

namespace lockstep::plan {
namespace {

/// The error of reading or of expanding.
std::string problem(const std::string& text) {
  const auto plan = read_plan(text, "p.json");
  if (!plan) return plan.error().message;
  const auto expansion = expand(*plan, Iteration::kSteady);
  return expansion ? "" : expansion.error().message;
}

std::string with(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

const std::string kGood = testing::gpt_plan("uniform");

TEST(ReadPlan, ReadsAGoodOne) {
  EXPECT_EQ(problem(kGood), "");
  EXPECT_EQ(read_plan(kGood, "p")->layers.size(), 6U);
}

struct BadPlan {
  std::string name;
  std::string from;
  std::string to;
  std::string error;
  friend void PrintTo(const BadPlan& bad, std::ostream* os) { *os << bad.name; }
};

class BadPlans : public ::testing::TestWithParam<BadPlan> {};

TEST_P(BadPlans, NameTheField) {
  const BadPlan& bad = GetParam();
  EXPECT_NE(problem(with(kGood, bad.from, bad.to)).find(bad.error), std::string::npos)
      << problem(with(kGood, bad.from, bad.to));
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadPlans,
    ::testing::ValuesIn<BadPlan>({
        {"NoJson", "{\"framework\"", "{{", "p.json: no JSON"},
        {"UnknownFramework", "\"deepspeed\"", "\"horovod\"", "p.json: $.framework.name: must be one of"},
        {"UnknownField", "\"topology\"", "\"topolgy\"", "$.topolgy: no such field"},
        {"Billion", "\"micro_batches\": 3", "\"micro_batches\": 1000000000",
         "$.schedule.micro_batches: must be an integer between"},
        {"ManySteps", "\"micro_batches\": 3", "\"micro_batches\": 65536, \"virtual_stages\": 20",
         "$.schedule.micro_batches: 65536 micro-batches in 2 stages of 20 chunks are 2621440 steps"},
        {"BeyondInt64", "\"micro_batches\": 3", "\"micro_batches\": 18446744073709551615",
         "$.schedule.micro_batches"},
        {"FlatBuffersOfAnotherStepper", "\"stage\": 1", "\"stage\": 0, \"reduction\": \"flat_all_reduce\"",
         "$.zero.reduction: flat buffers are those of the stepper zero"},
        {"Mics", "\"stage\": 1", "\"stage\": 1, \"mics_shard_size\": 2", "$.zero.mics_shard_size: MiCS is not expanded"},
        {"PartAlignment", "\"stage\": 1", "\"stage\": 1, \"part_alignment\": 0",
         "$.zero.part_alignment: must be an integer between"},
        {"LossDatatype", "\"micro_batches\": 3", "\"micro_batches\": 3, \"loss\": {\"datatype\": \"f8\"}",
         "$.schedule.loss.datatype: no such datatype"},
        {"RegexFindsNothing", "uniform", "type:conv",
         "$.partition.method: Partitioning 'conv' found no valid layers"},
        {"BadRegex", "uniform", "type:(", "$.partition.method: '(' is no regular expression"},
        {"UnknownMethod", "uniform", "best", "$.partition.method: Partitioning method best not implemented"},
        {"EmptyStage", "\"pipe\": 2", "\"pipe\": 8", "holds no layers"},
        {"ManyRanks", "\"pipe\": 2", "\"pipe\": 2, \"data\": 65536", "$.topology: more than"},
        {"NegativeShape", "[4, 16]", "[-4, 16]", "$.layers[0].outputs[0].shape[0]: must be an integer"},
        {"HugeShape", "[4, 16]", "[1099511627776, 1099511627776]",
         "$.layers[0].outputs[0].shape: too many elements"},
        {"TiedShapesDiffer", "\"parameters\": [{\"name\": \"w\", \"shape\": [32, 16]}]}]",
         "\"parameters\": [{\"name\": \"w\", \"shape\": [31, 16]}]}]", "are tied by 't'"},
        {"TiedWeightMissing", "[\"w\"]", "[\"v\"]", "$.layers[0].tied_weights: there is no parameter 'v'"},
        {"ZeroWithPipeline", "\"stage\": 1", "\"stage\": 3",
         "$.zero.stage: ZeRO-2 and ZeRO-3 are incompatible"},
        {"SkipBackwards", "\"tied\": \"t\"", "\"skips_to\": [0], \"tied\": \"t\"", "$.layers[0].skips_to: 0 is no later layer"},
        {"SkipOfAnotherFramework", "\"tied\": \"t\"", "\"skips_to\": [4], \"tied\": \"t\"", "only torch's gpipe and 1f1b"},
        {"SkipPastTheEnd", "\"tied\": \"t\"", "\"skips_to\": [99], \"tied\": \"t\"", "$.layers: skips_to of layer 0"},
        {"InputArgsOfAnotherFramework", "\"micro_batches\": 3", "\"micro_batches\": 3, \"stages_with_input_args\": [0]",
         "$.schedule.stages_with_input_args: only torch's stages"},
        {"InputArgsOfNoStage", "\"micro_batches\": 3", "\"micro_batches\": 3, \"stages_with_input_args\": [7]",
         "$.schedule.stages_with_input_args[0]: must be an integer between"},
        {"TokensWithoutTokens", "\"schedule\"",
         "\"overrides\": [{\"where\": {\"pipe\": 0}, \"set\": {\"num_tokens_source\": 0}}], \"schedule\"",
         "$.overrides[0].set.num_tokens_source: needs $.optimizer.per_token_loss"},
        {"ContradictingParts", "\"method\"", "\"parts\": [0, 3, 6], \"method\"",
         "$.partition.parts: contradicts method"},
        {"StepperOfAnother", "\"groups\"", "\"stepper\": \"ddp\", \"groups\"",
         "$.optimizer.stepper: ddp is none of deepspeed's"},
        {"StepperWithoutZero", "\"groups\"", "\"stepper\": \"fused\", \"groups\"",
         "$.optimizer.stepper: fused contradicts $.zero.stage"},
        {"UnknownSchedule", "\"micro_batches\"", "\"name\": \"zbv\", \"micro_batches\"",
         "$.schedule.name: 'zbv' is none of deepspeed's"},
        {"NoSchedule", "\"micro_batches\"", "\"name\": \"none\", \"micro_batches\"",
         "contradicts $.topology.pipe"},
        {"OtherSchema", "{\"framework\"", "{\"schema\": \"lockstep-plan/9\", \"framework\"",
         "$.schema: must be lockstep-plan/1"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(ReadPlan, DeepNestingAndOddTypesAreErrors) {
  EXPECT_FALSE(read_plan(std::string(100'000, '['), "p"));
  for (const char* text :
       {"", "3", "[]", "{}", "{\"layers\": 3}", "{\"framework\": [], \"layers\": {}}", "null"})
    EXPECT_FALSE(read_plan(text, "p")) << text;
}

}  // namespace
}  // namespace lockstep::plan
