// The pipeline against plain training. tests/bench/zero1_equality_full.cc is the whole matrix; here is what
// each row is for.
#include <gtest/gtest.h>

#include <optional>

#include <set>

#include "equality_bounds.h"
#include "pipeline_run.h"

namespace zero1 {
namespace {

struct Case {
  std::string name;
  int pipe = 1;
  int data = 1;
  std::string partition;
  int micro_batches = 2;
  double clip = 1;
  Norm norm = Norm::kFused;
  Reduce reduce = Reduce::kAllReduce;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

Config config_of(const Case& c) {
  Config config = small_config();
  config.pipe = c.pipe;
  config.data = c.data;
  config.partition = c.partition;
  config.micro_batches = c.micro_batches;
  config.clip = c.clip;
  config.norm = c.norm;
  config.reduce = c.reduce;
  return config;
}

template <class P>
void expect_equality(const Config& config, const Difference& bound) {
  const Trained truth = train_plainly<P>(config, small_corpus());
  const Difference apart = difference(train_in_threads<P>(config, small_corpus()), truth);
  EXPECT_LE(apart.loss, bound.loss);
  EXPECT_LE(apart.grad_norm, bound.grad_norm);
  EXPECT_LE(apart.weights, bound.weights);
}

class Equality : public testing::TestWithParam<Case> {};

TEST_P(Equality, InDouble) { expect_equality<F64>(config_of(GetParam()), bounds_of(kDoubleBound)); }
TEST_P(Equality, InSinglePrecision) { expect_equality<F32>(config_of(GetParam()), bounds_of(kSingleBound)); }
TEST_P(Equality, InMixedPrecision) {
  const Config config = config_of(GetParam());
  expect_equality<Mixed>(config, mixed_bounds(config));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Equality,
    testing::Values(Case{"OneRank", 1, 1, "uniform", 3}, Case{"DataOnly", 1, 3, "uniform", 1},
                    Case{"EmbeddingBoundary", 2, 1, "type:embed", 4},
                    Case{"EmbeddingBoundaryReplicas", 2, 3, "type:embed", 2, 1, Norm::kAgreedGroups,
                         Reduce::kReduceScatter},
                    Case{"Blocks", 2, 2, "type:transformer", 8, 0, Norm::kPerGroup},
                    Case{"ThreeStages", 3, 1, "parameters", 1, 0.05},
                    Case{"FourStages", 4, 2, "uniform", 5, 0.05, Norm::kFused, Reduce::kReduceScatter},
                    Case{"MoreStagesThanMicroBatches", 4, 1, "type:transformer", 1},
                    Case{"GroupSmallerThanReplicas", 2, 13, "at:8", 1, 1, Norm::kAgreedGroups}),
    testing::PrintToStringParamName());

TEST(Equality, ClippingIsActiveWhereItIsMeantToBe) {
  Config config = small_config();
  config.clip = 0;
  const Trained free = train_plainly<F64>(config, small_corpus());
  config.clip = 0.05;
  const Trained clipped = train_plainly<F64>(config, small_corpus());
  EXPECT_GT(*std::min_element(free.grad_norms.begin(), free.grad_norms.end()), 0.05);
  EXPECT_GT(difference(clipped, free).weights, 1e-6);
}

/// Sums in rank order and a norm summed without rounding leave no freedom: every norm reduction, way to reduce gradients,
/// partition and number of stages that tie two copies has equal bits, clipped or not.
template <class P>
void expect_equal_bits(double clip, int data) {
  struct Layout {
    int pipe;
    const char* partition;
  };
  Config config = small_config();
  config.ordered = true;
  config.clip = clip;
  config.data = data;
  config.steps = 8;
  std::optional<Trained> first;
  for (const Layout& layout : {Layout{2, "uniform"}, Layout{2, "type:embed"}, Layout{2, "parameters"},
                               Layout{3, "uniform"}, Layout{4, "uniform"}}) {
    for (const auto& [norm, reduce] :
         {std::pair(Norm::kFused, Reduce::kAllReduce), std::pair(Norm::kAgreedGroups, Reduce::kReduceScatter)}) {
      config.pipe = layout.pipe;
      config.partition = layout.partition;
      config.norm = norm;
      config.reduce = reduce;
      const Trained again = train_in_threads<P>(config, small_corpus());
      if (!first) first = again;
      EXPECT_EQ(again.losses, first->losses) << layout.pipe << layout.partition;
      EXPECT_EQ(again.grad_norms, first->grad_norms) << layout.pipe << layout.partition;
      EXPECT_EQ(again.weights, first->weights) << layout.pipe << layout.partition;
      EXPECT_GT(again.grad_norms.front(), clip);
    }
  }
}

TEST(Equality, IsBitExactWhereTheOrderOfSumsIsFixed) {
  for (const double clip : {0.0, 0.05}) {
    for (const int data : {1, 3}) {
      expect_equal_bits<F64>(clip, data);
      expect_equal_bits<F32>(clip, data);
      expect_equal_bits<Mixed>(clip, data);
    }
  }
}

TEST(Equality, StepsSkippedByOverflowLeaveNoTrace) {
  Config config = small_config();
  config.pipe = 2;
  config.data = 2;
  config.partition = "type:embed";
  config.steps = 12;
  config.loss_scale = 0x1p130;  // gradients overflow a float until it has been halved
  const Trained scaled = train_in_threads<F32>(config, small_corpus());
  std::set<int> skipped;
  Trained taken{{}, {}, scaled.weights};
  for (int step = 0; step < config.steps; ++step) {
    const auto i = static_cast<std::size_t>(step);
    if (std::isnan(scaled.grad_norms[i])) {
      skipped.insert(step);
      continue;
    }
    taken.losses.push_back(scaled.losses[i]);
    taken.grad_norms.push_back(scaled.grad_norms[i]);
  }
  ASSERT_FALSE(skipped.empty());
  ASSERT_GE(taken.losses.size(), 5U);
  const Trained truth = train_plainly<F32>(config, small_corpus(), skipped);
  EXPECT_LE(difference(taken, truth).worst(), kSingleBound);
}

}  // namespace
}  // namespace zero1
