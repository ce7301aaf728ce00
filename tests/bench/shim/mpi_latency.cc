// Ping-pong and all-reduce of 8 bytes between ranks of one host: what recording adds to calls that do
// something. `mpi_latency_cost` runs it with and without.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

constexpr int kBursts = 400;
constexpr int kCalls = 200;

template <class Call>
void measure(const char* name, int rank, Call call) {
  std::vector<double> bursts;
  for (int burst = 0; burst < kBursts; ++burst) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < kCalls; ++i) call();
    bursts.push_back((MPI_Wtime() - begin) / kCalls * 1e9);
  }
  std::sort(bursts.begin(), bursts.end());
  if (rank == 0)
    std::printf("%-12s p5 %8.1f ns  p50 %8.1f ns\n", name, bursts[kBursts / 20], bursts[kBursts / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double mine = 1;
  double all = 0;
  measure("ping-pong", rank, [&] {
    if (rank == 0) {
      MPI_Send(&mine, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(&all, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Recv(&all, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&mine, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
  });
  measure("all-reduce", rank, [&] { MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); });
  MPI_Finalize();
  return 0;
}
