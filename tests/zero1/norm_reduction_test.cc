// What the three norm reductions ask of a group, and what comes out.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "pipeline_run.h"

namespace zero1 {
namespace {

/// Collectives that each rank makes on the model-parallel group in one reduction, stages owning `groups`
/// groups.
std::vector<std::size_t> calls_on_model_group(Norm norm, const std::vector<std::size_t>& groups) {
  std::vector<std::size_t> made(groups.size());
  ThreadCommunicator::run(static_cast<int>(groups.size()), [&](ThreadCommunicator world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const Groups ranks = make_groups(std::move(world), static_cast<int>(groups.size()), 1, false);
    make_norm_reduction(norm)->squared_norm(std::vector<SquaredSum>(groups[rank], SquaredSum{2.0}), ranks);
    made[rank] = ranks.model.collectives();
  });
  return made;
}

TEST(NormReduction, FusedReducesOnceWhateverARankOwns) {
  EXPECT_EQ(calls_on_model_group(Norm::kFused, {2, 1, 5}), (std::vector<std::size_t>{1, 1, 1}));
}

TEST(NormReduction, AgreedGroupsReducesOnceForAnyNumberOfGroups) {
  for (const std::size_t groups : {1U, 2U, 9U})
    EXPECT_EQ(calls_on_model_group(Norm::kAgreedGroups, {groups, groups}), (std::vector<std::size_t>{1, 1}));
}

TEST(NormReduction, PerGroupReducesOnceForEachGroup) {
  EXPECT_EQ(calls_on_model_group(Norm::kPerGroup, {3, 3}), (std::vector<std::size_t>{3, 3}));
}

TEST(AgreeOnGroups, KeepsWhatAnyStageHas) {
  ThreadCommunicator::run(3, [](ThreadCommunicator world) {
    const std::uint64_t mine[] = {1, 0, 4};
    const int rank = world.rank();
    const Groups ranks = make_groups(std::move(world), 3, 1, false);
    EXPECT_EQ(agree_on_groups(ranks, mine[rank]), 5U);
  });
}

/// Optimizer groups of each stage, by norm.
std::vector<std::vector<std::string>> groups_of_stages(Norm norm, const std::string& partition_method) {
  Config config = small_config();
  config.pipe = 2;
  config.norm = norm;
  const Parts parts = partition(partition_method, layer_specs(config.model), config.model, 2);
  std::vector<std::vector<std::string>> names(2);
  ThreadCommunicator::run(2, [&](ThreadCommunicator world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const Groups ranks = make_groups(std::move(world), 2, 1, true);
    PipelineEngine<F32> engine(config, parts, ranks, small_corpus());
    for (const FlatGroup<F32>& group : engine.optimizer().groups()) names[rank].push_back(group.name());
  });
  return names;
}

TEST(ParameterGroups, AStageOfTheEmbeddingAloneHasOne) {
  using Names = std::vector<std::vector<std::string>>;
  EXPECT_EQ(groups_of_stages(Norm::kFused, "type:embed"), (Names{{"decay", "no_decay"}, {"decay"}}));
  EXPECT_EQ(groups_of_stages(Norm::kFused, "type:transformer"),
            (Names{{"decay", "no_decay"}, {"decay", "no_decay"}}));
  EXPECT_EQ(groups_of_stages(Norm::kAgreedGroups, "type:embed"),
            (Names{{"decay", "no_decay"}, {"decay", "no_decay"}}));
}

TEST(GradientNorm, CountsATiedWeightOnce) {
  Config config = small_config();
  config.pipe = 2;
  config.steps = 1;
  config.partition = "type:embed";
  const Trained truth = train_plainly<F64>(config, small_corpus());
  const Trained run = train_in_threads<F64>(config, small_corpus());
  EXPECT_NEAR(run.grad_norms[0], truth.grad_norms[0], 1e-12);
  // The tied gradient is a real part of it: counted twice it would show.
  EXPECT_GT(truth.grad_norms[0], 0.1);
}

TEST(FlatGroup, PadsToEqualPartsAndLeavesPaddingZero) {
  Parameter<F32> parameter;
  parameter.name = "w";
  parameter.shape = {7};
  parameter.deviation = 1;
  for (int replica = 0; replica < 3; ++replica) {
    FlatGroup<F32> group({"decay", true, {&parameter}}, 3, replica, 1);
    EXPECT_EQ(group.elements(), 7U);
    EXPECT_EQ(group.part_size(), 3U);
    EXPECT_EQ(group.weights().size(), 9U);
    EXPECT_EQ(group.weights()[7], 0.F);
    EXPECT_EQ(group.weights()[8], 0.F);
    EXPECT_EQ(group.state_bytes(), 12U * 3U);
    for (std::size_t i = 0; i < group.part_size(); ++i)
      EXPECT_EQ(group.master()[i],
                group.weights()[group.part_size() * static_cast<std::size_t>(replica) + i]);
  }
}

/// 12 bytes for each parameter of a stage, shared by its replicas; each group's parts are padded to equal size.
TEST(OptimizerState, IsTwelveBytesForEachParameterOverTheReplicas) {
  for (const int pipe : {1, 2, 4}) {
    for (const int data : {1, 2, 3, 5}) {
      Config config = small_config();
      config.pipe = pipe;
      config.data = data;
      const Parts parts = partition(config.partition, layer_specs(config.model), config.model, static_cast<std::size_t>(pipe));
      ThreadCommunicator::run(config.ranks(), [&](ThreadCommunicator world) {
        const Groups ranks = make_groups(std::move(world), pipe, data, false);
        PipelineEngine<F32> engine(config, parts, ranks, small_corpus());
        std::size_t parameters = 0;
        for (const Parameter<F32>* parameter : engine.module().parameters()) parameters += parameter->size();
        const std::size_t bytes = engine.optimizer().state_bytes();
        const auto replicas = static_cast<std::size_t>(data);
        EXPECT_GE(bytes * replicas, 12 * parameters);
        EXPECT_LT(bytes * replicas, 12 * (parameters + engine.optimizer().groups().size() * replicas));
        EXPECT_TRUE(data > 1 || bytes == 12 * parameters) << bytes;
      });
    }
  }
}

TEST(FlatGroup, MayBeSmallerThanTheNumberOfReplicas) {
  Parameter<F32> parameter;
  parameter.name = "w";
  parameter.shape = {2};
  parameter.deviation = 1;
  double squared = 0;
  for (int replica = 0; replica < 5; ++replica) {
    FlatGroup<F32> group({"decay", true, {&parameter}}, 5, replica, 1);
    EXPECT_EQ(group.part_size(), 1U);
    parameter.grad[0] = 3;
    parameter.grad[1] = 4;
    squared += group.squared_grad_sum();
    EXPECT_FALSE(group.has_non_finite_grad());
  }
  EXPECT_DOUBLE_EQ(squared, 25);
}

TEST(FlatGroup, SumsNothingForATiedCopy) {
  Parameter<F32> own;
  own.name = "own";
  own.shape = {3};
  Parameter<F32> copy = own;
  copy.name = "copy";
  copy.replicated = true;
  FlatGroup<F32> group({"decay", true, {&copy, &own}}, 1, 0, 1);
  copy.grad[0] = 100;
  own.grad[2] = 2;
  EXPECT_DOUBLE_EQ(group.squared_grad_sum(), 4);
}

}  // namespace
}  // namespace zero1
