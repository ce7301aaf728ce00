// The root broadcasts fewer elements than the others expect.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int shared[8] = {};
  MPI_Bcast(shared, program.faulty && program.rank == 0 ? 2 : 8, MPI_INT, 0, MPI_COMM_WORLD);
  return program.finish();
}
