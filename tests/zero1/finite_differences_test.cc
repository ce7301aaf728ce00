// The gradients by hand against central differences of the loss, in double, for every parameter of a small
// model.
#include <gtest/gtest.h>

#include "pipeline_run.h"

namespace zero1 {
namespace {

struct Case {
  std::string name;
  ModelShape shape;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

class FiniteDifferences : public testing::TestWithParam<Case> {};

TEST_P(FiniteDifferences, AgreeWithEveryGradient) {
  Config config;
  config.model = GetParam().shape;
  config.micro_batch_size = 2;
  const Corpus corpus("abracadabra, abbot ada", config.model.sequence);
  config.model.words = corpus.words();
  const std::vector<LayerSpec> specs = layer_specs(config.model);
  PipelineModule<F64> module(specs, {0, specs.size()}, config.model, 0);
  std::vector<std::vector<double>> weights;
  std::vector<std::vector<double>> grads;
  for (Parameter<F64>* parameter : module.parameters()) {
    // Away from the special first values: biases of zero and gains of one would hide a term.
    Parameter<F64> rough = *parameter;
    rough.deviation = 0.4;
    weights.push_back(first_values(rough, 11));
    grads.emplace_back(weights.back().size(), 0.0);
    parameter->weight = weights.back().data();
    parameter->grad = grads.back().data();
  }
  const MicroBatch batch = corpus.micro_batch(config, 0, 0, 0);
  const auto loss = [&] {
    Tape<F64> tape;
    tape.batch = &batch;
    cross_entropy(module.forward({}, tape), tape);
    return tape.loss;
  };
  Tape<F64> tape;
  tape.batch = &batch;
  module.backward(cross_entropy(module.forward({}, tape), tape), tape);
  EXPECT_TRUE(tape.empty());

  constexpr double kStep = 1e-5;  // error of a central difference: about step^2 + 1e-16 / step
  for (std::size_t p = 0; p < weights.size(); ++p) {
    double largest = 0;
    for (std::size_t i = 0; i < weights[p].size(); ++i) {
      const double kept = weights[p][i];
      weights[p][i] = kept + kStep;
      const double above = loss();
      weights[p][i] = kept - kStep;
      const double below = loss();
      weights[p][i] = kept;
      EXPECT_NEAR(grads[p][i], (above - below) / (2 * kStep), 1e-8)
          << module.parameters()[p]->name << "[" << i << "]";
      largest = std::max(largest, std::abs(grads[p][i]));
    }
    EXPECT_GT(largest, 1e-5) << module.parameters()[p]->name << ": a gradient of zero shows nothing";
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, FiniteDifferences,
                         testing::Values(Case{"OneHead", {0, 4, 1, 1, 3}},
                                         Case{"TwoHeadsTwoBlocks", {0, 6, 2, 2, 4}},
                                         Case{"OddWidths", {0, 5, 5, 1, 5}}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace zero1
