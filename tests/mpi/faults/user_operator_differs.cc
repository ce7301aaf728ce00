// Two operators are made in the same order, and rank 1 uses the wrong one.
#include "fault.h"

namespace {
void add(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}
}  // namespace

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  MPI_Op first = MPI_OP_NULL, second = MPI_OP_NULL;
  MPI_Op_create(add, 1, &first);
  MPI_Op_create(add, 1, &second);
  int mine = program.rank, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, program.faulty && program.rank == 1 ? second : first,
                MPI_COMM_WORLD);
  MPI_Op_free(&first);
  MPI_Op_free(&second);
  return program.finish();
}
