// What one recorded call of NCCL, and one recorded host wait, costs: libraries whose calls return at once, through the recorder and
// without it. Percentiles of short bursts, as in shim_bench.cc. Target nccl_cost runs it without, with LOCKSTEP=0, and recording.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "cuda_api.h"
#include "nccl_api.h"

namespace {

constexpr int kComms = 8;
ncclComm_t g_comms[kComms];
float g_buffer[4];

cudaStream_t stream(int i) { return reinterpret_cast<cudaStream_t>(static_cast<std::uintptr_t>(0x1000 * (i + 1))); }
cudaEvent_t event(int i) { return reinterpret_cast<cudaEvent_t>(static_cast<std::uintptr_t>(0x100000 + 0x40 * i)); }

template <class Call>
void measure(benchmark::State& state, Call call) {
  constexpr int kBurst = 1000;
  std::vector<double> bursts;
  bursts.reserve(1 << 16);
  for (int i = 0; i < kBurst; ++i) call(i);
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kBurst; ++i) call(i);
    const auto end = std::chrono::steady_clock::now();
    bursts.push_back(std::chrono::duration<double, std::nano>(end - begin).count() / kBurst);
  }
  std::sort(bursts.begin(), bursts.end());
  state.counters["p5_ns"] = bursts[bursts.size() / 20];
  state.counters["p50_ns"] = bursts[bursts.size() / 2];
}

void all_reduce(int i) { ncclAllReduce(g_buffer, g_buffer, 4, ncclFloat32, ncclSum, g_comms[i & 7], stream(i & 1)); }

void all_reduce_8_comms(benchmark::State& state) { measure(state, all_reduce); }
void group_send_recv(benchmark::State& state) {
  measure(state, [](int i) {
    ncclGroupStart();
    ncclSend(g_buffer, 4, ncclFloat32, 1, g_comms[i & 7], stream(0));
    ncclRecv(g_buffer, 4, ncclFloat32, 1, g_comms[i & 7], stream(0));
    ncclGroupEnd();
  });
}
void event_record(benchmark::State& state) {
  all_reduce(0);
  measure(state, [](int i) { cudaEventRecord(event(i & 3), stream(0)); });
}
void event_sync(benchmark::State& state) {
  measure(state, [](int i) {
    if ((i & 63) == 0) {
      all_reduce(0);
      for (int e = 0; e < 64; ++e) cudaEventRecord(event(e), stream(0));
    }
    cudaEventSynchronize(event(i & 63));
  });
}
void stream_wait(benchmark::State& state) {
  all_reduce(0);
  cudaEventRecord(event(0), stream(0));
  measure(state, [](int) { cudaStreamWaitEvent(stream(5), event(0), 0); });
}
void all_reduce_and_stream_sync(benchmark::State& state) {
  measure(state, [](int) {
    all_reduce(0);
    cudaStreamSynchronize(stream(0));
  });
}
void stream_sync_without_work(benchmark::State& state) {
  cudaStreamSynchronize(stream(0));
  measure(state, [](int) { cudaStreamSynchronize(stream(0)); });
}

BENCHMARK(all_reduce_8_comms);
BENCHMARK(group_send_recv);
BENCHMARK(event_record);
BENCHMARK(event_sync);
BENCHMARK(stream_wait);
BENCHMARK(all_reduce_and_stream_sync);
BENCHMARK(stream_sync_without_work);

}  // namespace

int main(int argc, char** argv) {
  ncclUniqueId id{};
  for (ncclComm_t& comm : g_comms) {
    id.internal[0] = static_cast<char>(id.internal[0] + 1);
    ncclCommInitRank(&comm, 2, id, 0);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
