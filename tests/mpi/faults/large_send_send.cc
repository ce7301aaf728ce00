// Both ranks send a message that is too large to be buffered before they receive.
#include <vector>

#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  const int other = 1 - program.rank;
  std::vector<int> mine(1 << 20), theirs(1 << 20);
  const int count = static_cast<int>(mine.size());
  if (program.faulty) {
    MPI_Send(mine.data(), count, MPI_INT, other, 0, MPI_COMM_WORLD);
    MPI_Recv(theirs.data(), count, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Sendrecv(mine.data(), count, MPI_INT, other, 0, theirs.data(), count, MPI_INT, other, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return program.finish();
}
