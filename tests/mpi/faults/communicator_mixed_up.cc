// Rank 1 uses the second of two copies of the world where the others use the first.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  MPI_Comm first = MPI_COMM_NULL, second = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_dup(MPI_COMM_WORLD, &second);
  MPI_Barrier(program.faulty && program.rank == 1 ? second : first);
  MPI_Comm_free(&second);
  MPI_Comm_free(&first);
  return program.finish();
}
