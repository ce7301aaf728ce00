// An intercommunicator between even and odd ranks: made, used, merged, freed.
#include <mpi.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int side = rank % 2;
  MPI_Comm local = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, side, rank, &local);
  MPI_Comm both = MPI_COMM_NULL;
  MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - side, 4, &both);
  MPI_Barrier(both);
  int value = rank;
  int local_rank = 0;
  MPI_Comm_rank(both, &local_rank);
  const int root = side == 1 ? 0 : local_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Bcast(&value, 1, MPI_INT, root, both);
  MPI_Comm merged = MPI_COMM_NULL;
  MPI_Intercomm_merge(both, side, &merged);
  int sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, merged);
  std::printf("rank %d got %d sum %d\n", rank, side == 1 ? value : -1, sum);
  std::fflush(stdout);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&both);
  MPI_Comm_free(&local);
  MPI_Finalize();
  return 0;
}
