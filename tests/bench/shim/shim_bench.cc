// What one recorded call costs: a stand-in MPI whose calls return at once, called through the recorder and
// without it. Short bursts; the 5th percentile is what the budget is about, for the rest is what else the
// machine does.
//
//   LD_PRELOAD=.../liblockstep.so LOCKSTEP_DIR=... shim_bench     and without LD_PRELOAD for the floor; the
//   target recorder_cost runs both
#define MPICH_SKIP_MPICXX 1
#include <benchmark/benchmark.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

// Percentiles over the bursts of a benchmark's repetitions, in ns per call.
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
  state.SetItemsProcessed(static_cast<std::int64_t>(bursts.size()) * kBurst);
}

void allreduce(benchmark::State& state) {
  double mine = 1;
  double all = 0;
  measure(state, [&](int) { MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); });
}
void barrier(benchmark::State& state) {
  measure(state, [](int) { MPI_Barrier(MPI_COMM_WORLD); });
}
void send(benchmark::State& state) {
  int value = 1;
  measure(state, [&](int i) { MPI_Send(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD); });
}
void isend_wait(benchmark::State& state) {
  int value = 1;
  MPI_Request request;
  measure(state, [&](int i) {
    MPI_Isend(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
}
void eight_communicators(benchmark::State& state) {
  MPI_Comm comms[8];
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  measure(state, [&](int i) { MPI_Barrier(comms[i & 7]); });
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}
void test_poll(benchmark::State& state) {
  int value = 1;
  int flag = 0;
  MPI_Request request;
  MPI_Isend(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
  measure(state, [&](int) { MPI_Test(&request, &flag, MPI_STATUS_IGNORE); });
}

BENCHMARK(allreduce);
BENCHMARK(barrier);
BENCHMARK(send);
BENCHMARK(isend_wait);
BENCHMARK(eight_communicators);
BENCHMARK(test_poll);

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "?";
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  benchmark::Initialize(&argc, argv);
  const char* preload = std::getenv("LD_PRELOAD");
  const char* wanted = std::getenv("LOCKSTEP");
  const bool on = preload != nullptr && std::string(preload).find("liblockstep") != std::string::npos;
  benchmark::AddCustomContext("machine", processor());
  benchmark::AddCustomContext("recorder", !on                                   ? "not there"
                                          : wanted != nullptr && *wanted == '0' ? "LOCKSTEP=0"
                                                                                : "on");
  benchmark::RunSpecifiedBenchmarks();
  MPI_Finalize();
  return 0;
}
