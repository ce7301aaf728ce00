// zero1_pipeline: trains a small GPT over pipeline stages and replicas. See README.md.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>

#include "check_arguments.h"
#include "first_values.h"
#include "options.h"
#include "pipeline_engine.h"
#include "print_plan.h"
#include "training_log.h"

namespace zero1 {
namespace {

constexpr int kTimeoutStatus = 75;

// Only what is allowed in a signal handler: a job that hangs must not keep its machine.
void give_up(int) {
  static const char kText[] = "zero1_pipeline: no step finished in time, giving up\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(kTimeoutStatus);
}

std::string read_text(const std::string& file) {
  if (file.empty()) return default_text();
  std::ifstream in(file, std::ios::binary);
  if (!in) throw ConfigError("--text " + file + ": cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class P>
void train(const Options& options, const Parts& parts, const Groups& ranks, const Corpus& corpus) {
  const Config& config = options.config;
  PipelineEngine<P> engine(config, parts, ranks, corpus);
  std::printf("rank %d: stage %d of %d, replica %d of %d, layers [%zu, %zu), optimizer groups",
              ranks.world.rank(), ranks.place.stage, ranks.stages, ranks.place.replica, ranks.replicas,
              parts[static_cast<std::size_t>(ranks.place.stage)],
              parts[static_cast<std::size_t>(ranks.place.stage) + 1]);
  for (const FlatGroup<P>& group : engine.optimizer().groups())
    std::printf(" %s (%zu)", group.name().c_str(), group.elements());
  std::printf(", optimizer state %zu bytes\n", engine.optimizer().state_bytes());
  std::fflush(stdout);
  const bool reports = ranks.world.rank() == 0;
  TrainingLog log(reports ? options.csv_file : "", config.steps);
  for (int step = 0; step < config.steps; ++step) {
    if (options.timeout_s > 0) alarm(static_cast<unsigned>(options.timeout_s));
    const auto start = std::chrono::steady_clock::now();
    const StepResult result = engine.train_batch(step);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (reports) log.step(step, result, took.count());
  }
  ranks.world.barrier();
  if (reports) std::printf("done\n");
}

void run(Options options, Communicator world) {
  std::string fault = options.message;
  std::string text;
  Config& config = options.config;
  std::vector<std::pair<std::string, std::string>> arguments;
  try {
    text = read_text(options.text_file);
    config.model.words = Corpus(text, config.model.sequence).words();
    if (fault.empty()) check_sizes(config);
    if (fault.empty() && world.size() != config.ranks())
      throw ConfigError("--pipe " + std::to_string(config.pipe) + " --data " + std::to_string(config.data) +
                        " needs " + std::to_string(config.ranks()) + " ranks; " +
                        std::to_string(world.size()) + " were started");
  } catch (const ConfigError& error) {
    if (fault.empty()) fault = error.what();
  }
  arguments = described(config);
  arguments.emplace_back("--text", std::to_string(seed_of(text, 0)));
  check_arguments(world, arguments, fault);

  const std::vector<LayerSpec> specs = layer_specs(config.model);
  const Parts parts = partition(config.partition, specs, config.model, static_cast<std::size_t>(config.pipe));
  check_no_empty_stage(parts, specs, config.model);
  world.set_ordered(config.ordered);
  const std::vector<std::size_t> tied = stages_of_tied_layers(specs, parts);
  const auto stage = static_cast<std::size_t>(world.rank() / config.data);
  const bool owns_tied_copy = tied.size() > 1 && std::find(tied.begin(), tied.end(), stage) != tied.end();
  const Corpus corpus(text, config.model.sequence);
  const Groups ranks = make_groups(std::move(world), config.pipe, config.data, owns_tied_copy);
  switch (config.precision) {
    case Precision::kF64:
      return train<F64>(options, parts, ranks, corpus);
    case Precision::kF32:
      return train<F32>(options, parts, ranks, corpus);
    case Precision::kMixed:
      return train<Mixed>(options, parts, ranks, corpus);
  }
}

}  // namespace
}  // namespace zero1

int main(int argc, char** argv) {
  using namespace zero1;
  Options options = parse_options(argc, argv);
  if (!options.message.empty() && options.exit_code == 0) {
    std::fputs(options.message.c_str(), stdout);
    return 0;
  }
  if (options.print_plan && options.message.empty()) {
    try {
      options.config.model.words =
          Corpus(read_text(options.text_file), options.config.model.sequence).words();
      check_sizes(options.config);
      std::fputs(plan_json(options.config).c_str(), stdout);
      return 0;
    } catch (const ConfigError& error) {
      std::fprintf(stderr, "zero1_pipeline: %s\n", error.what());
      return 2;
    }
  }
  signal(SIGALRM, give_up);
  if (options.timeout_s > 0) alarm(static_cast<unsigned>(options.timeout_s));
  const Communicator::Job job(argc, argv);
  try {
    run(options, Communicator::world());
  } catch (const ConfigError& error) {  // every rank throws it
    std::fprintf(stderr, "zero1_pipeline: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {  // perhaps this rank alone: the others must not wait for it
    std::fprintf(stderr, "zero1_pipeline: %s\n", error.what());
    std::fflush(nullptr);
    Communicator::abort(1);
  }
  return 0;
}
