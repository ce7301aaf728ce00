// Rank 1 leaves the program without MPI_Finalize while the others wait for it.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  if (program.faulty && program.rank == 1) _exit(0);
  MPI_Barrier(MPI_COMM_WORLD);
  return program.finish();
}
