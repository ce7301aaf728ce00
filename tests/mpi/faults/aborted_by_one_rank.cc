// Rank 1 gives up with MPI_Abort while the others wait.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  if (program.faulty && program.rank == 1) {
    usleep(300'000);  // the others are in the barrier by then
    MPI_Abort(MPI_COMM_WORLD, 9);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return program.finish();
}
