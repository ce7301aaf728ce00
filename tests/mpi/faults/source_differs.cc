// Rank 1 waits for a message from rank 2, which sends to rank 0.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int value = 0;
  if (program.rank == 2) MPI_Send(&value, 1, MPI_INT, program.faulty ? 0 : 1, 0, MPI_COMM_WORLD);
  if (program.rank == 1) MPI_Recv(&value, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return program.finish();
}
