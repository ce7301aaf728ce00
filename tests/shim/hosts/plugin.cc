// A plug-in with an MPI of its own, as a Python extension is.
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

extern "C" int plugin_run() {
  int flag = 0;
  MPI_Initialized(&flag);
  if (flag == 0) MPI_Init(nullptr, nullptr);
  int mine = 5;
  int all = 0;
  for (int i = 0; i < 10; ++i) MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return all;
}
