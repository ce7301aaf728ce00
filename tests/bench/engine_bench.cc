// How fast the engine compares and replays jobs that agree, how its cost grows, what a job weighs in memory,
// and how long the command takes on a small input. Prints the machine first: numbers mean nothing without it.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "diagnose/diagnose.h"
#include "match/match.h"
#include "replay/model_replays.h"
#include "replay/replay.h"
#include "support/big_jobs.h"
#include "support/random_job.h"

namespace lockstep::testing {
namespace {

/// What `check` does with a job that it has read: compare, then run under every model whose outcome can
/// differ.
bool compare_and_replay(const Job& job) {
  const MatchResult matched = match(job);
  const std::vector<BlockingModel> models = distinct_models(job, matched);
  ModelReplays replays(job, matched, models);
  bool finished = true;
  for (const BlockingModel model : models) finished = replays.of(model).finished() && finished;
  return matched.agreed() && finished;
}

bool compare_and_replay_lazy(const Job& job) {
  const MatchResult matched = match(job);
  return replay(job, matched, {}).finished() && matched.agreed();
}

void report(benchmark::State& state, const Job& job) {
  const auto operations = static_cast<std::int64_t>(job.operation_count());
  state.SetItemsProcessed(state.iterations() * operations);
  state.counters["operations"] = static_cast<double>(operations);
  state.counters["ranks"] = static_cast<double>(job.programs().size());
}

void run(benchmark::State& state, const Job& job, bool (*engine)(const Job&)) {
  for ([[maybe_unused]] auto _ : state) {
    if (!engine(job)) state.SkipWithError("the engine does not finish a job that agrees");
  }
  report(state, job);
}

const Job& three_axes() {
  static const Job job = three_axes_job(1024, 10000);
  return job;
}
const Job& pipeline() {
  static const Job job = pipeline_job(128, 8, 16, 2000);
  return job;
}
const Job& mixed() {
  static const Job job = mixed_job(1024, 2000);
  return job;
}

void BM_Match_ThreeAxes(benchmark::State& state) {
  const Job& job = three_axes();
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(match(job).gate_count);
  report(state, job);
}
void BM_Lazy_ThreeAxes(benchmark::State& state) { run(state, three_axes(), compare_and_replay_lazy); }
void BM_AllModels_ThreeAxes(benchmark::State& state) { run(state, three_axes(), compare_and_replay); }
void BM_Lazy_Pipeline(benchmark::State& state) { run(state, pipeline(), compare_and_replay_lazy); }
void BM_AllModels_Pipeline(benchmark::State& state) { run(state, pipeline(), compare_and_replay); }
void BM_Lazy_Mixed(benchmark::State& state) { run(state, mixed(), compare_and_replay_lazy); }
void BM_AllModels_Mixed(benchmark::State& state) { run(state, mixed(), compare_and_replay); }
void BM_Diagnose_Mixed(benchmark::State& state) {
  const Job& job = mixed();
  for ([[maybe_unused]] auto _ : state) {
    if (diagnose(job).verdict != Verdict::kConsistent) state.SkipWithError("a job that agrees is accused");
  }
  report(state, job);
}
void BM_Diagnose_Outlier_4096Ranks(benchmark::State& state) {
  const Job job = outlier_job(4096, 500, 1234);
  for ([[maybe_unused]] auto _ : state) {
    if (diagnose(job).findings.empty()) state.SkipWithError("the outlier is not found");
  }
  report(state, job);
}
/// The whole process, from exec to exit, on a job of a few dozen ranks' size.
void BM_CheckSmallInput(benchmark::State& state) {
  const std::filesystem::path input = std::filesystem::temp_directory_path() / "lockstep_bench_small.json";
  std::ofstream(input) << to_job_json(random_correct_job(1));
  const std::string command = "\"" LOCKSTEP_COMMAND "\" check \"" + input.string() + "\" > /dev/null 2>&1";
  for ([[maybe_unused]] auto _ : state) {
    if (std::system(command.c_str()) != 0) state.SkipWithError("check fails");
  }
  std::filesystem::remove(input);
}
BENCHMARK(BM_Match_ThreeAxes)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Lazy_ThreeAxes)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_AllModels_ThreeAxes)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Lazy_Pipeline)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_AllModels_Pipeline)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Lazy_Mixed)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_AllModels_Mixed)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Diagnose_Mixed)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Diagnose_Outlier_4096Ranks)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_CheckSmallInput)->Unit(benchmark::kMillisecond)->UseRealTime();

/// The best of several runs, in processor time: what the code costs without the neighbours on the machine.
double nanoseconds_per_operation(const Job& job) {
  double best = std::numeric_limits<double>::max();
  const std::clock_t begin = std::clock();
  for (int i = 0; i < 3 || std::clock() - begin < CLOCKS_PER_SEC / 3; ++i) {
    const std::clock_t start = std::clock();
    benchmark::DoNotOptimize(compare_and_replay_lazy(job));
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC * 1e9);
  }
  return best / static_cast<double>(job.operation_count());
}

void print_growth(const char* what, std::initializer_list<std::pair<std::int32_t, std::int32_t>> sizes,
                  const std::function<Job(std::int32_t, std::int32_t)>& make) {
  std::printf("\n%s\n%10s %10s %12s %10s %10s\n", what, "ranks", "calls", "operations", "cpu ns/op", "ratio");
  double first = 0;
  for (const auto& [ranks, calls] : sizes) {
    const Job job = make(ranks, calls);
    const double cost = nanoseconds_per_operation(job);
    if (first == 0) first = cost;
    std::printf("%10d %10d %12zu %10.2f %10.2f\n", ranks, calls, job.operation_count(), cost, cost / first);
  }
}

double resident_bytes(const char* field) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(field)) return std::stod(line.substr(line.find(':') + 1)) * 1024;
  }
  return 0;
}

void print_memory() {
  const double before = resident_bytes("VmRSS");
  const Job job = three_axes_job(1024, 10000);
  const double with_job = resident_bytes("VmRSS");
  benchmark::DoNotOptimize(compare_and_replay(job));
  const double peak = resident_bytes("VmHWM");
  const auto operations = static_cast<double>(job.operation_count());
  std::printf("memory, %.0f operations: job %.1f bytes an operation, job and engine at their peak %.1f\n",
              operations, (with_job - before) / operations, (peak - before) / operations);
}

void print_machine() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  std::string model = "unknown processor";
  while (std::getline(info, line)) {
    if (line.starts_with("model name")) model = line.substr(line.find(':') + 2);
  }
  std::printf("machine: %s, %u cores; the engine uses one\n", model.c_str(),
              std::thread::hardware_concurrency());
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  using namespace lockstep::testing;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  print_machine();
  print_memory();  // first, while the peak is this job's own
  std::fflush(stdout);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  print_growth("more operations, three axes", {{64, 160}, {64, 1600}, {64, 16000}, {64, 160000}},
               three_axes_job);
  print_growth("more operations, mixed", {{64, 160}, {64, 1600}, {64, 16000}, {64, 160000}}, mixed_job);
  print_growth("more ranks, three axes", {{64, 100}, {640, 100}, {6400, 100}, {64000, 100}}, three_axes_job);
  print_growth("more ranks, mixed", {{64, 100}, {640, 100}, {6400, 100}, {64000, 100}}, mixed_job);
  return 0;
}
