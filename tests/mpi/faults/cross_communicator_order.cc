// Two communicators of the same ranks, used in opposite order.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  MPI_Comm first = MPI_COMM_NULL, second = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_dup(MPI_COMM_WORLD, &second);
  const bool swapped = program.faulty && program.rank == 1;
  MPI_Barrier(swapped ? second : first);
  MPI_Barrier(swapped ? first : second);
  return program.finish();
}
