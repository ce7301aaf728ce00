// Both ranks send synchronously before they receive.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  const int other = 1 - program.rank;
  int mine = program.rank, theirs = 0;
  if (program.faulty || program.rank == 0) {
    MPI_Ssend(&mine, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
    MPI_Recv(&theirs, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(&theirs, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ssend(&mine, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
  }
  return program.finish();
}
