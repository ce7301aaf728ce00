// Rank 1 starts a nonblocking barrier where the others make a blocking one.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  if (program.faulty && program.rank == 1) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return program.finish();
}
