// What the small faulty programs share. Each is one MPI mistake; with the argument "correct" the same program
// without it.
#pragma once

#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace fault {

inline constexpr int kHungStatus = 75;

/// MPI is up, and the program ends itself when it hangs.
class Program {
 public:
  Program(int& argc, char**& argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    faulty = argc < 2 || std::strcmp(argv[1], "correct") != 0;
    signal(SIGALRM, [](int) { _exit(kHungStatus); });
    alarm(faulty ? 2 : 20);
  }
  int finish() const {
    std::printf("rank %d ends\n", rank);
    std::fflush(stdout);
    MPI_Finalize();
    return 0;
  }

  int rank = 0;
  int ranks = 0;
  bool faulty = true;
};

}  // namespace fault
