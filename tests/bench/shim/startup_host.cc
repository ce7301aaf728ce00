// A process that says how long after the given instant (monotonic clock, ns) it had made its first call, or had done without one.
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (std::string(argv[1]) == "call") {
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const long long begin = std::atoll(argv[2]);
  std::printf("%lld\n", static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec - begin);
  return 0;
}
