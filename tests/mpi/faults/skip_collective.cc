// Rank 1 leaves out an all-reduce that the others make.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int mine = program.rank, all = 0;
  if (!program.faulty || program.rank != 1) MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  return program.finish();
}
