// Sends and reduces buffers whose bytes are easy to find again in a file.
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  // Put together here, so that the text stands in no constant of the program that a copy of it would show.
  char secret[64] = "content-of-";
  std::strcat(secret, "a-message");
  char other[64] = {};
  const int bytes = static_cast<int>(sizeof secret);
  MPI_Request request = MPI_REQUEST_NULL;
  for (int i = 0; i < 100; ++i) {
    MPI_Send(secret, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    MPI_Isend(secret, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Bcast(secret, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Allreduce(secret, other, bytes, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD);
  }
  std::puts(std::memcmp(secret, other, sizeof secret) == 0 ? "received" : "lost");
  MPI_Finalize();
  return 0;
}
