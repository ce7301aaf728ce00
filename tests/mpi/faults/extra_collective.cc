// Rank 0 makes one barrier more than the others before it ends.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int mine = program.rank, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (program.faulty && program.rank == 0) MPI_Barrier(MPI_COMM_WORLD);
  return program.finish();
}
