// A pipeline run with one thread for each rank, and how far it is from another run.
#pragma once

#include <algorithm>
#include <cmath>
#include <mutex>
#include <stdexcept>
#include <string>

#include "check_arguments.h"
#include "pipeline_engine.h"
#include "plain_training.h"

namespace zero1 {

/// A short text with few different bytes: the runs are many.
inline const Corpus& small_corpus(std::size_t sequence = 4) {
  static const Corpus corpus(
      "when in the course of human events it becomes necessary for one people to dissolve", sequence);
  return corpus;
}

/// A model that four stages can share, of uneven sizes: parts of optimizer groups need padding for two and
/// three replicas.
inline Config small_config() {
  Config config;
  config.model = {small_corpus().words(), 6, 2, 4, 4};
  config.pipe = 1;
  config.data = 1;
  config.micro_batches = 2;
  config.micro_batch_size = 1;
  config.steps = 20;
  config.partition = "uniform";
  return config;
}

/// Throws what the first failing rank throws; std::runtime_error if copies of a weight differ at the end.
template <class P>
Trained train_in_threads(const Config& config, const Corpus& corpus) {
  const std::vector<LayerSpec> specs = layer_specs(config.model);
  const Parts parts = partition(config.partition, specs, config.model, static_cast<std::size_t>(config.pipe));
  check_no_empty_stage(parts, specs, config.model);
  const std::vector<std::size_t> tied = stages_of_tied_layers(specs, parts);
  Trained result;
  std::mutex mutex;
  ThreadCommunicator::run(config.ranks(), [&](ThreadCommunicator world) {
    const auto stage = static_cast<std::size_t>(world.rank() / config.data);
    const bool owns_tied_copy = tied.size() > 1 && std::find(tied.begin(), tied.end(), stage) != tied.end();
    const bool reports = world.rank() == 0;
    const Groups ranks = make_groups(std::move(world), config.pipe, config.data, owns_tied_copy);
    PipelineEngine<P> engine(config, parts, ranks, corpus);
    for (int step = 0; step < config.steps; ++step) {
      const StepResult outcome = engine.train_batch(step);
      if (!reports) continue;
      result.losses.push_back(outcome.loss);
      result.grad_norms.push_back(outcome.grad_norm);
    }
    const std::lock_guard lock(mutex);
    for (const Parameter<P>* parameter : engine.module().parameters()) {
      std::vector<double> values;
      for (std::size_t i = 0; i < parameter->size(); ++i)
        values.push_back(static_cast<double>(static_cast<typename P::Real>(parameter->weight[i])));
      const auto [at, added] = result.weights.emplace(parameter->name, values);
      if (!added && at->second != values)
        throw std::runtime_error("copies of " + parameter->name + " differ");
    }
  });
  return result;
}

/// Relative differences: of the worst step's loss and gradient norm, and norm-wise of all weights together.
struct Difference {
  double loss = 0;
  double grad_norm = 0;
  double weights = 0;
  double worst() const { return std::max({loss, grad_norm, weights}); }
};

inline Difference difference(const Trained& run, const Trained& truth) {
  Difference result;
  const auto worst = [](const std::vector<double>& a, const std::vector<double>& b) {
    if (a.size() != b.size()) throw std::runtime_error("runs of different lengths");
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]) / std::abs(b[i]));
    return most;
  };
  result.loss = worst(run.losses, truth.losses);
  result.grad_norm = worst(run.grad_norms, truth.grad_norms);
  double apart = 0;
  double size = 0;
  if (run.weights.size() != truth.weights.size()) throw std::runtime_error("runs of different models");
  for (const auto& [name, values] : truth.weights) {
    const std::vector<double>& others = run.weights.at(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      apart += std::pow(others[i] - values[i], 2);
      size += std::pow(values[i], 2);
    }
  }
  result.weights = std::sqrt(apart / size);
  return result;
}

}  // namespace zero1
