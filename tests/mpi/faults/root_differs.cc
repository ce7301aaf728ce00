// Rank 1 takes itself for the root of a broadcast.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int shared[4] = {program.rank, 0, 0, 0};
  MPI_Bcast(shared, 4, MPI_INT, program.faulty && program.rank == 1 ? 1 : 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  return program.finish();
}
