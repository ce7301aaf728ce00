// The reference optimizer against plain single-process training, over the whole matrix: stages 1-4, replicas
// 1-3, partitions, precisions, 1-8 micro-batches, clipping on and off, all norm reductions that finish.
// Prints the worst difference of each row.
#include <cstdio>
#include <cstdlib>

#include "equality_bounds.h"
#include "pipeline_run.h"

namespace zero1 {
namespace {

int failures = 0;
int runs = 0;

/// Worst over what the row does not say.
template <class P>
void add(const Config& config, const Difference& bound, Difference& worst) {
  const Trained truth = train_plainly<P>(config, small_corpus());
  const Difference apart = difference(train_in_threads<P>(config, small_corpus()), truth);
  ++runs;
  if (!(apart.loss <= bound.loss && apart.grad_norm <= bound.grad_norm && apart.weights <= bound.weights)) {
    ++failures;
    std::printf("FAILED %s:", P::kName);
    for (const auto& [name, value] : described(config)) std::printf(" %s %s", name.c_str(), value.c_str());
    std::printf(": loss %.2e norm %.2e weights %.2e\n", apart.loss, apart.grad_norm, apart.weights);
  }
  worst.loss = std::max(worst.loss, apart.loss);
  worst.grad_norm = std::max(worst.grad_norm, apart.grad_norm);
  worst.weights = std::max(worst.weights, apart.weights);
}

void row(Config config) {
  Difference in_double, in_single, in_mixed;
  for (int micro_batches = 1; micro_batches <= 8; ++micro_batches) {
    config.micro_batches = micro_batches;
    for (const double clip : {0.0, 0.05}) {
      config.clip = clip;
      // What does not enter the result takes turns.
      config.norm = (micro_batches + (clip > 0)) % 2 == 0 ? Norm::kFused : Norm::kAgreedGroups;
      config.reduce = micro_batches % 3 == 0 ? Reduce::kReduceScatter : Reduce::kAllReduce;
      add<F64>(config, bounds_of(kDoubleBound), in_double);
      add<F32>(config, bounds_of(kSingleBound), in_single);
      add<Mixed>(config, mixed_bounds(config), in_mixed);
    }
  }
  std::printf("%4d %4d  %-17s", config.pipe, config.data, config.partition.c_str());
  for (const Difference& apart : {in_double, in_single, in_mixed})
    std::printf("  %7.1e %7.1e %7.1e", apart.loss, apart.grad_norm, apart.weights);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace zero1

int main() {
  using namespace zero1;
  std::printf("worst relative difference over 1-8 micro-batches, clipping on and off, 20 steps\n");
  std::printf(
      "pipe data  partition          fp64: loss   norm  weights   fp32: loss   norm  weights   mixed: loss  "
      "norm  weights\n");
  for (int pipe = 1; pipe <= 4; ++pipe) {
    for (int data = 1; data <= 3; ++data) {
      for (const char* partition_method :
           {"uniform", "parameters", "type:embed", "type:transformer", "type:embed|transformer"}) {
        Config config = small_config();
        config.pipe = pipe;
        config.data = data;
        config.partition = partition_method;
        const std::vector<LayerSpec> specs = layer_specs(config.model);
        try {
          check_no_empty_stage(
              partition(partition_method, specs, config.model, static_cast<std::size_t>(pipe)), specs,
              config.model);
        } catch (const ConfigError&) {
          std::printf("%4d %4d  %-17s  has an empty stage\n", pipe, data, partition_method);
          continue;
        }
        row(config);
      }
    }
  }
  std::printf("%d runs, %d failures\n", runs, failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
