// The receiver waits for another tag than the one that was sent.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int value = 0;
  if (program.rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
  if (program.rank == 1) {
    MPI_Recv(&value, 1, MPI_INT, 0, program.faulty ? 6 : 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return program.finish();
}
