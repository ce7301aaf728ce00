// Rank 1 takes the maximum, the others the sum.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int mine = program.rank, all = 0;
  MPI_Op op = program.faulty && program.rank == 1 ? MPI_MAX : MPI_SUM;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, op, MPI_COMM_WORLD);
  return program.finish();
}
