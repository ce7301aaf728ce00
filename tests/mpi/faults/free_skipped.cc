// Rank 1 does not take part in freeing a communicator.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Barrier(copy);
  if (!program.faulty || program.rank != 1) MPI_Comm_free(&copy);
  return program.finish();
}
