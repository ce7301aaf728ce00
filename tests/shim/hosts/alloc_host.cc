// Counts what is allocated while MPI is called: its malloc is the process's.
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstddef>
#include <cstdio>

extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* __libc_calloc(std::size_t count, std::size_t size);
extern "C" void* __libc_realloc(void* old, std::size_t size);

static long g_allocations = 0;
extern "C" void* malloc(std::size_t size) {
  ++g_allocations;
  return __libc_malloc(size);
}
extern "C" void* calloc(std::size_t count, std::size_t size) {
  ++g_allocations;
  return __libc_calloc(count, size);
}
extern "C" void* realloc(void* old, std::size_t size) {
  ++g_allocations;
  return __libc_realloc(old, size);
}

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  MPI_Init(&argc, &argv);
  int mine = 1;
  int all = 0;
  const long before = g_allocations;
  for (int i = 0; i < 50000; ++i) {
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Send(&mine, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    MPI_Comm copy = MPI_COMM_NULL;
    if (i < 100) {
      MPI_Comm_dup(MPI_COMM_WORLD, &copy);
      MPI_Barrier(copy);
      MPI_Comm_free(&copy);
    }
  }
  std::printf("allocations %ld\n", g_allocations - before);
  return 0;
}
