// Every rank of a ring receives from its left neighbour first.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  const int right = (program.rank + 1) % program.ranks,
            left = (program.rank + program.ranks - 1) % program.ranks;
  int mine = program.rank, theirs = 0;
  if (!program.faulty && program.rank == 0) MPI_Send(&mine, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
  MPI_Recv(&theirs, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (program.faulty || program.rank != 0) MPI_Send(&mine, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
  return program.finish();
}
