// Rank 1 has another idea of how much each rank contributes to an allgatherv.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int mine[2] = {program.rank, program.rank};
  int all[4] = {};
  int counts[2] = {1, 1};
  const int displacements[2] = {0, 2};
  if (program.faulty && program.rank == 1) counts[0] = 2;
  MPI_Allgatherv(mine, 1, MPI_INT, all, counts, displacements, MPI_INT, MPI_COMM_WORLD);
  return program.finish();
}
