// A small message is sent and nobody receives it; the program ends all the same.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int value = 0;
  if (program.rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  if (program.rank == 1 && !program.faulty)
    MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return program.finish();
}
