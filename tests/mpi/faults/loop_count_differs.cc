// A loop runs once more on rank 0: its bound depends on local data.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int mine = program.rank, all = 0;
  const int rounds = program.faulty && program.rank == 0 ? 4 : 3;
  for (int i = 0; i < rounds; ++i) MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  return program.finish();
}
