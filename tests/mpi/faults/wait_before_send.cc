// Both ranks wait for their receive before they send.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  const int other = 1 - program.rank;
  int mine = program.rank, theirs = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&theirs, 1, MPI_INT, other, 0, MPI_COMM_WORLD, &request);
  if (program.faulty) MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Send(&mine, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
  if (!program.faulty) MPI_Wait(&request, MPI_STATUS_IGNORE);
  return program.finish();
}
