// Rank 1 does not take part in splitting the world.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  MPI_Comm half = MPI_COMM_NULL;
  if (!program.faulty || program.rank != 1) MPI_Comm_split(MPI_COMM_WORLD, program.rank % 2, 0, &half);
  MPI_Barrier(MPI_COMM_WORLD);
  return program.finish();
}
