// What the pipeline must equal: the whole model in one process, one gradient for each parameter, AdamW
// parameter by parameter. Shares the layers with the pipeline (finite_differences_test.cc checks them) and
// nothing of stages, groups or partitions.
#pragma once

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "corpus.h"
#include "first_values.h"
#include "pipeline_module.h"

namespace zero1 {

struct Trained {
  std::vector<double> losses;
  std::vector<double> grad_norms;  ///< NaN where a step was skipped
  std::map<std::string, std::vector<double>> weights;
};

/// `skipped`: steps that do not take place.
template <class P>
Trained train_plainly(const Config& config, const Corpus& corpus, const std::set<int>& skipped = {}) {
  using Param = typename P::Param;
  using Master = typename P::Master;
  const std::vector<LayerSpec> specs = layer_specs(config.model);
  PipelineModule<P> module(specs, {0, specs.size()}, config.model, 0);

  struct Memory {
    std::vector<Param> weight, grad;
    std::vector<Master> master, first, second;
  };
  std::map<Parameter<P>*, Memory> memory;
  for (Parameter<P>* parameter : module.parameters()) {
    Memory& own = memory[parameter];
    for (const double value : first_values(*parameter, config.seed)) {
      own.master.push_back(static_cast<Master>(value));
      own.weight.push_back(static_cast<Param>(own.master.back()));
    }
    own.grad.assign(own.weight.size(), Param(0.F));
    own.first.assign(own.weight.size(), 0);
    own.second.assign(own.weight.size(), 0);
    parameter->weight = own.weight.data();
    parameter->grad = own.grad.data();
  }

  Trained result;
  int updates = 0;
  const int batches = config.data * config.micro_batches;
  for (int step = 0; step < config.steps; ++step) {
    if (skipped.contains(step)) continue;
    ++updates;
    double loss = 0;
    for (int replica = 0; replica < config.data; ++replica) {
      for (int number = 0; number < config.micro_batches; ++number) {
        const MicroBatch batch = corpus.micro_batch(config, step, replica, number);
        Tape<P> tape;
        tape.batch = &batch;
        tape.loss_factor = 1.0 / batches;
        module.backward(cross_entropy(module.forward({}, tape), tape), tape);
        loss += tape.loss / batches;
      }
    }
    double squared = 0;
    for (const auto& [parameter, own] : memory) {
      for (const Param grad : own.grad)
        squared += std::pow(static_cast<double>(static_cast<typename P::Real>(grad)), 2);
    }
    const double norm = std::sqrt(squared);
    const double excess = config.clip > 0 ? (norm + 1e-6) / config.clip : 0;
    const Master clip = static_cast<Master>(excess > 1 ? 1 / excess : 1);
    for (auto& [parameter, own] : memory) {
      const Master decay = static_cast<Master>(parameter->decays ? config.weight_decay : 0);
      for (std::size_t i = 0; i < own.master.size(); ++i) {
        const Master g = static_cast<Master>(static_cast<typename P::Real>(own.grad[i])) * clip;
        own.first[i] =
            static_cast<Master>(config.beta1) * own.first[i] + static_cast<Master>(1 - config.beta1) * g;
        own.second[i] =
            static_cast<Master>(config.beta2) * own.second[i] + static_cast<Master>(1 - config.beta2) * g * g;
        const Master m = own.first[i] / static_cast<Master>(1 - std::pow(config.beta1, updates));
        const Master v = own.second[i] / static_cast<Master>(1 - std::pow(config.beta2, updates));
        own.master[i] -= static_cast<Master>(config.rate) *
                         (m / (std::sqrt(v) + static_cast<Master>(config.epsilon)) + decay * own.master[i]);
        own.weight[i] = static_cast<Param>(own.master[i]);
        own.grad[i] = Param(0.F);
      }
    }
    result.losses.push_back(loss);
    result.grad_norms.push_back(norm);
  }
  for (const auto& [parameter, own] : memory) {
    std::vector<double>& values = result.weights[parameter->name];
    for (const Param weight : own.weight)
      values.push_back(static_cast<double>(static_cast<typename P::Real>(weight)));
  }
  return result;
}

}  // namespace zero1
