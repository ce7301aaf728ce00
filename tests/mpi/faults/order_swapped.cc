// Rank 1 reduces before it broadcasts, the others after.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int mine = program.rank, all = 0;
  int shared = 7;
  if (program.faulty && program.rank == 1) {
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(&shared, 1, MPI_INT, 0, MPI_COMM_WORLD);
  } else {
    MPI_Bcast(&shared, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  return program.finish();
}
