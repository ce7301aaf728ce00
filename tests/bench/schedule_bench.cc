// How long the expansion of a pipeline schedule takes: 16 stages, 512 micro-batches, 8 virtual stages where
// there are any.
#include <benchmark/benchmark.h>

#include <numeric>

#include "plan/schedule/deepspeed.h"
#include "plan/schedule/dualpipe.h"
#include "plan/schedule/lower_to_job.h"
#include "plan/schedule/megatron.h"
#include "plan/schedule/torch_lower.h"
#include "plan/schedule/torch_orders.h"
#include "plan/schedule/torch_runtime.h"
#include "plan/schedule/zero_bubble.h"

namespace lockstep::plan {
namespace {

constexpr std::int32_t kStages = 16;
constexpr std::int32_t kMicroBatches = 512;

const MegatronQuery kInterleaved{.schedule = MegatronSchedule::kInterleaved,
                                 .stages = kStages,
                                 .chunks = 8,
                                 .micro_batches = kMicroBatches};
const MegatronQuery k1F1B{.stages = kStages, .micro_batches = kMicroBatches};

void expand(benchmark::State& state, const MegatronQuery& query) {
  for (auto _ : state) benchmark::DoNotOptimize(megatron_timeline(query));
}
BENCHMARK_CAPTURE(expand, megatron_1f1b, k1F1B)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(expand, megatron_interleaved_8, kInterleaved)->Unit(benchmark::kMillisecond);

void expand_deepspeed(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        deepspeed_timeline(deepspeed_train(kStages, kMicroBatches, DeepSpeedVersion::kNew), true));
  }
}
BENCHMARK(expand_deepspeed)->Unit(benchmark::kMillisecond);

void expand_torch(benchmark::State& state, TorchSchedule schedule, std::int32_t stages_per_rank) {
  const TorchQuery query{.schedule = schedule,
                         .ranks = kStages,
                         .stages_per_rank = stages_per_rank,
                         .micro_batches = kMicroBatches};
  for (auto _ : state) {
    const auto lowered = lower_torch_order(torch_order(query), query.stages(), kMicroBatches);
    benchmark::DoNotOptimize(torch_timeline(lowered->compute_comms, lowered->stage_ranks));
  }
}
BENCHMARK_CAPTURE(expand_torch, interleaved_1f1b_8, TorchSchedule::kInterleaved1F1B, 8)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(expand_torch, zbv, TorchSchedule::kZbv, 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(expand_torch, dualpipev, TorchSchedule::kDualPipeV, 2)->Unit(benchmark::kMillisecond);

void expand_torch_runtime(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(
        torch_runtime_timeline(TorchRuntimeSchedule::k1F1B, kStages, kMicroBatches, false));
}
BENCHMARK(expand_torch_runtime)->Unit(benchmark::kMillisecond);

void expand_dualpipe(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(dualpipe_timeline(DualPipeKind::kBothWays, kStages, kMicroBatches));
}
BENCHMARK(expand_dualpipe)->Unit(benchmark::kMillisecond);

void expand_zero_bubble(benchmark::State& state, ZeroBubbleSchedule schedule, std::int32_t micro_batches) {
  const ZeroBubbleQuery query{
      .schedule = schedule, .stages = kStages, .micro_batches = micro_batches, .chunks = chunks_of(schedule)};
  for (auto _ : state) {
    const auto order = zero_bubble_order(query);
    const auto messages = zero_bubble_with_messages(query, *order);
    benchmark::DoNotOptimize(zero_bubble_timeline(*messages));
  }
}
BENCHMARK_CAPTURE(expand_zero_bubble, zb, ZeroBubbleSchedule::kZb, kMicroBatches)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(expand_zero_bubble, zbv, ZeroBubbleSchedule::kZbv, kMicroBatches)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(expand_zero_bubble, v1f1b, ZeroBubbleSchedule::kV1F1B, kMicroBatches)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(expand_zero_bubble, greedy_half_128, ZeroBubbleSchedule::kZbvGreedyHalf, 128)
    ->Unit(benchmark::kMillisecond);

void lower(benchmark::State& state, const MegatronQuery& query) {
  const Timeline timeline = megatron_timeline(query);
  std::vector<std::int32_t> ranks(timeline.ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::int64_t operations_made = 0;
  for (auto _ : state) {
    JobBuilder builder;
    const CommIndex pipeline = builder.communicator("pp", "pp", ranks);
    ScheduleLowering lowering(builder, timeline, {});
    for (const std::int32_t rank : ranks) {
      std::vector<Operation> operations;
      lowering.append(rank, {.ranks = ranks, .pipeline = pipeline}, operations);
      operations_made += static_cast<std::int64_t>(operations.size());
      builder.program(rank).operations = std::move(operations);
    }
    benchmark::DoNotOptimize(std::move(builder).build());
  }
  state.SetItemsProcessed(operations_made);
}
BENCHMARK_CAPTURE(lower, megatron_1f1b, k1F1B)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lower, megatron_interleaved_8, kInterleaved)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep::plan

BENCHMARK_MAIN();
