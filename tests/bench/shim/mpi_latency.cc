// Ping-pong and all-reduce of 8 bytes between ranks of one host: what recording adds to calls that do
// something. `recorder_cost` runs it with and without, in turns. Prints "NAME|P5|MIN", in ns.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

int g_bursts = 400;
constexpr int kCalls = 200;

template <class Call>
void measure(const char* name, int rank, Call call) {
  std::vector<double> bursts;
  for (int burst = 0; burst < g_bursts; ++burst) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < kCalls; ++i) call();
    bursts.push_back((MPI_Wtime() - begin) / kCalls * 1e9);
  }
  std::sort(bursts.begin(), bursts.end());
  if (rank == 0) std::printf("%s|%.1f|%.1f\n", name, bursts[bursts.size() / 20], bursts.front());
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc > 1) g_bursts = std::max(1, std::atoi(argv[1]));
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double mine = 1;
  double all = 0;
  measure("ping-pong of 8 bytes", rank, [&] {
    if (rank == 0) {
      MPI_Send(&mine, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(&all, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Recv(&all, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&mine, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
  });
  measure("all-reduce of 8 bytes", rank, [&] { MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); });
  MPI_Finalize();
  return 0;
}
