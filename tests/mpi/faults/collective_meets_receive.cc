// Rank 0 makes the barrier before it sends, rank 1 receives before it makes the barrier.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int value = 0;
  if (program.rank == 0) {
    if (program.faulty) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (!program.faulty) MPI_Barrier(MPI_COMM_WORLD);
  } else {
    if (program.rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return program.finish();
}
