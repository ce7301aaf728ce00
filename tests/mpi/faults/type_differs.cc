// Rank 1 reduces floats, the others integers of the same size.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int mine = program.rank, all = 0;
  MPI_Datatype type = program.faulty && program.rank == 1 ? MPI_FLOAT : MPI_INT;
  MPI_Allreduce(&mine, &all, 1, type, MPI_SUM, MPI_COMM_WORLD);
  return program.finish();
}
