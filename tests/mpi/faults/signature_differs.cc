// Two pairs of integers meet three integers; the correct twin sends pairs and receives single ones.
#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  int values[8] = {};
  if (program.rank == 0) {
    MPI_Bcast(values, 2, pair, 0, MPI_COMM_WORLD);
  } else {
    MPI_Bcast(values, program.faulty ? 5 : 4, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Type_free(&pair);
  return program.finish();
}
