// Rank 1 cuts the result of a reduce-scatter at another place.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  int mine[4] = {1, 2, 3, 4};
  int part[4] = {};
  int counts[2] = {2, 2};
  if (program.faulty && program.rank == 1) counts[0] = 1, counts[1] = 3;
  MPI_Reduce_scatter(mine, part, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return program.finish();
}
