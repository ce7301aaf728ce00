// A program with a profiling layer of its own, linked in: its MPI_Barrier stands before the recorder's, what
// it calls does not.
#include <mpi.h>

#include <cstdio>

static int g_barriers = 0;

extern "C" int MPI_Barrier(MPI_Comm comm) {
  ++g_barriers;
  return PMPI_Barrier(comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
  int mine = 1;
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("barriers %d sum %d\n", g_barriers, all);
  MPI_Finalize();
  return 0;
}
