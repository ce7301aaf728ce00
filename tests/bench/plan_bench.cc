// How fast plans are read, expanded and replayed, and how long the command takes on the founding plan. Ranks
// are not taken to be alike: each has its own program.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "match/match.h"
#include "plan/expansion.h"
#include "plan/read_plan.h"
#include "replay/replay.h"

namespace lockstep::plan {
namespace {

std::string pipeline_plan(std::int64_t pipe, std::int64_t data, std::int64_t tensor,
                          std::int64_t micro_batches) {
  return fmt::format(
      R"({{"framework": {{"name": "megatron", "version": "0.16.1"}}, "topology": {{"pipe": {0}, "data": {1}, "tensor": {2}}},
    "datatype": "bf16", "layers": [{{"class": "Block", "repeat": {0}, "parameters": [{{"name": "w", "shape": [1024, 1024]}}, {{"name": "bias", "shape": [1024]}}]}}],
    "optimizer": {{"stepper": "megatron_distributed"}}, "schedule": {{"micro_batches": {3}}}}})",
      pipe, data, tensor, micro_batches);
}

void expand_and_replay(benchmark::State& state) {
  const auto plan = read_plan(pipeline_plan(8, state.range(0), 4, 32), "plan");
  std::size_t operations = 0;
  for (auto _ : state) {
    const auto expansion = expand(*plan, Iteration::kSteady);
    const MatchResult matched = match(expansion->job);
    benchmark::DoNotOptimize(replay(expansion->job, matched, {}).finished());
    operations += expansion->job.operation_count();
  }
  state.counters["operations/s"] =
      benchmark::Counter(static_cast<double>(operations), benchmark::Counter::kIsRate);
}
BENCHMARK(expand_and_replay)->Arg(1)->Arg(8)->Arg(32)->Unit(benchmark::kMillisecond);

void replay_alone(benchmark::State& state) {
  const auto plan = read_plan(pipeline_plan(8, state.range(0), 4, 32), "plan");
  const auto expansion = expand(*plan, Iteration::kSteady);
  std::size_t operations = 0;
  for (auto _ : state) {
    const MatchResult matched = match(expansion->job);
    benchmark::DoNotOptimize(replay(expansion->job, matched, {}).finished());
    operations += expansion->job.operation_count();
  }
  state.counters["operations/s"] =
      benchmark::Counter(static_cast<double>(operations), benchmark::Counter::kIsRate);
}
BENCHMARK(replay_alone)->Arg(8)->Arg(32)->Unit(benchmark::kMillisecond);

void gate_the_founding_plan(benchmark::State& state) {
  const std::string command =
      fmt::format("{} gate {}/founding_type_embed.json >/dev/null", LOCKSTEP_COMMAND, LOCKSTEP_EXAMPLE_PLANS);
  for (auto _ : state) benchmark::DoNotOptimize(std::system(command.c_str()));
}
BENCHMARK(gate_the_founding_plan)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace lockstep::plan

BENCHMARK_MAIN();
