// How layers are cut into stages; whole tables of real values are in tests/plan.
#include "plan/partition.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace lockstep::plan {
namespace {

constexpr auto kOld = PartitionAlgorithm::kBinarySearch;
constexpr auto kNew = PartitionAlgorithm::kDynamic;

// The layers of a small GPT as Megatron-DeepSpeed lists them, one without a name.
const std::vector<LayerSize> kGpt{{"EmbeddingPipe", 640},
                                  {"", 0},
                                  {"ParallelTransformerLayerPipe", 3280},
                                  {"ParallelTransformerLayerPipe", 3280},
                                  {"undo", 0},
                                  {"MixedFusedLayerNorm", 32},
                                  {"EmbeddingPipe", 640}};

TEST(PartitionLayers, ARegexIsFoundAnywhereAndCaseIsIgnored) {
  EXPECT_EQ(*partition_layers("type:embed", kGpt, 2, kOld), (Parts{0, 6, 7}));
  EXPECT_EQ(*partition_layers("TYPE:EMBED|Transformer", kGpt, 2, kOld), (Parts{0, 3, 7}));
  EXPECT_EQ(*partition_layers("type:embed:transformer", kGpt, 2, kOld), (Parts{0, 6, 7}));
}

TEST(PartitionLayers, ARegexThatFindsNothingIsAnError) {
  EXPECT_EQ(partition_layers("type:conv", kGpt, 2, kNew).error().message,
            "Partitioning 'conv' found no valid layers to partition.");
  EXPECT_FALSE(partition_layers("type:(", kGpt, 2, kNew));
  EXPECT_EQ(partition_layers("Profile", kGpt, 2, kNew).error().message,
            "Partitioning method profile not implemented.");
}

TEST(PartitionLayers, ParametersAreWeights) {
  EXPECT_EQ(*partition_layers("parameters", kGpt, 2, kNew), (Parts{0, 3, 7}));
}

TEST(PartitionUniform, ARemainderMovedFromTheLastPartToTheFirst) {
  EXPECT_EQ(*partition_uniform(11, 4, kOld), (Parts{0, 2, 4, 6, 11}));
  EXPECT_EQ(*partition_uniform(11, 4, kNew), (Parts{0, 3, 6, 9, 11}));
}

TEST(PartitionBalanced, EndsOnHostileWeights) {
  const std::vector<double> huge(10, 9e15);
  const std::vector<double> odd{0, std::numeric_limits<double>::quiet_NaN()};
  for (const auto algorithm : {kOld, kNew}) {
    EXPECT_FALSE(partition_balanced(huge, 3, algorithm));
    EXPECT_FALSE(partition_balanced(odd, 1, algorithm));
    EXPECT_FALSE(partition_balanced({}, 0, algorithm));
    EXPECT_FALSE(partition_balanced(std::vector<double>(1'000'000, 1.0), 4, algorithm));
  }
  EXPECT_FALSE(partition_balanced(std::vector<double>(50'000, 1.0), 64, kNew));
  EXPECT_TRUE(partition_balanced(std::vector<double>(50'000, 1.0), 64, kOld));
}

}  // namespace
}  // namespace lockstep::plan
