// What partitioning costs: time of one step of the reference optimizer against the unpartitioned run on the
// same global batch, in one process with a thread for each rank, and bytes of optimizer state of a rank. The
// fastest of many steps counts.
#include <chrono>
#include <cstdio>

#include "pipeline_run.h"

namespace zero1 {
namespace {

struct Cost {
  double step_ms = 0;
  std::size_t state_bytes = 0;  ///< of the rank that keeps most
  std::size_t model_calls = 0;  ///< collectives on the model-parallel group in one step
};

Cost cost_of(const Config& config, const Corpus& corpus) {
  const std::vector<LayerSpec> specs = layer_specs(config.model);
  const Parts parts = partition(config.partition, specs, config.model, static_cast<std::size_t>(config.pipe));
  const std::vector<std::size_t> tied = stages_of_tied_layers(specs, parts);
  Cost cost;
  std::mutex mutex;
  ThreadCommunicator::run(config.ranks(), [&](ThreadCommunicator world) {
    const auto stage = static_cast<std::size_t>(world.rank() / config.data);
    const bool reports = world.rank() == 0;
    const bool owns_tied_copy = tied.size() > 1 && std::find(tied.begin(), tied.end(), stage) != tied.end();
    const Groups ranks = make_groups(std::move(world), config.pipe, config.data, owns_tied_copy);
    PipelineEngine<F32> engine(config, parts, ranks, corpus);
    const std::size_t calls_before = ranks.model.collectives();
    for (int step = 0; step < config.steps; ++step) {
      const auto start = std::chrono::steady_clock::now();
      engine.train_batch(step);
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      if (reports && (step == 0 || took.count() < cost.step_ms)) cost.step_ms = took.count();
    }
    const std::lock_guard lock(mutex);
    cost.state_bytes = std::max(cost.state_bytes, engine.optimizer().state_bytes());
    if (reports)
      cost.model_calls = (ranks.model.collectives() - calls_before) / static_cast<std::size_t>(config.steps);
  });
  return cost;
}

}  // namespace
}  // namespace zero1

int main() {
  using namespace zero1;
  Config config;
  config.model = {0, 32, 4, 2, 16};
  config.steps = 10;
  const Corpus corpus(default_text(), config.model.sequence);
  config.model.words = corpus.words();
  struct Row {
    int pipe, data;
    Norm norm;
    Cost cost{};
  };
  std::vector<Row> rows;
  for (const auto& [pipe, data] :
       {std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 1}, std::pair{2, 2}, std::pair{2, 3}}) {
    for (const Norm norm : {Norm::kFused, Norm::kAgreedGroups}) rows.push_back({pipe, data, norm});
  }
  for (int round = 0; round < 5; ++round) {  // taking turns, so that a busy machine is busy for all
    for (Row& row : rows) {
      config.pipe = row.pipe;
      config.data = row.data;
      config.micro_batches = 12 / row.data;
      config.norm = row.norm;
      config.partition = "parameters";
      const Cost cost = cost_of(config, corpus);
      const double fastest = round == 0 ? cost.step_ms : std::min(row.cost.step_ms, cost.step_ms);
      row.cost = cost;
      row.cost.step_ms = fastest;
    }
  }
  std::printf("pipe data  norm           step ms  ratio  state bytes of a rank  calls on the model group\n");
  for (const Row& row : rows)
    std::printf("%4d %4d  %-13s  %7.2f  %5.2f  %21zu  %24zu\n", row.pipe, row.data, name_of(row.norm),
                row.cost.step_ms, row.cost.step_ms / rows[0].cost.step_ms, row.cost.state_bytes,
                row.cost.model_calls);
  return 0;
}
