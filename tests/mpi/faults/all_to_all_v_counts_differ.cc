// Rank 5 expects more of rank 0 than that sends. Before it: counts that fit, given in other types, in place, and by members that
// have nothing to give.
#include <vector>

#include "fault.h"

int main(int argc, char** argv) {
  const fault::Program program(argc, argv);
  const int ranks = program.ranks;
  const bool odd = program.rank % 2 == 1;
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  std::vector<int> places;
  for (int i = 0; i < ranks; ++i) places.push_back(16 * i);
  std::vector<int> mine(16U * static_cast<unsigned>(ranks));
  std::vector<int> all(mine.size());

  std::vector<int> counts(static_cast<unsigned>(ranks), 4);
  counts[3] = 0;  // rank 3 has nothing, and names any type
  const bool root = program.rank == 1;
  if (program.rank == 3) MPI_Gatherv(nullptr, 0, MPI_BYTE, nullptr, nullptr, nullptr, MPI_INT, 1, MPI_COMM_WORLD);
  else MPI_Gatherv(root ? MPI_IN_PLACE : mine.data(), odd ? 4 : 2, odd ? MPI_INT : pair, all.data(), counts.data(), places.data(), MPI_INT, 1, MPI_COMM_WORLD);
  if (program.rank == 3) MPI_Scatterv(nullptr, nullptr, nullptr, MPI_INT, nullptr, 0, MPI_CHAR, 1, MPI_COMM_WORLD);
  else MPI_Scatterv(mine.data(), counts.data(), places.data(), MPI_INT, all.data(), odd ? 4 : 2, odd ? MPI_INT : pair, 1, MPI_COMM_WORLD);

  std::vector<int> sent;
  std::vector<int> expected;
  for (int i = 0; i < ranks; ++i) {
    sent.push_back((program.rank + 2 * i) % 5);
    expected.push_back((i + 2 * program.rank) % 5);
  }
  std::vector<int> equal(static_cast<unsigned>(ranks), 3);
  MPI_Alltoallv(MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, all.data(), equal.data(), places.data(), MPI_INT, MPI_COMM_WORLD);
  if (program.faulty && program.rank == 5) expected[0] += 2;
  MPI_Alltoallv(mine.data(), sent.data(), places.data(), MPI_INT, all.data(), expected.data(), places.data(), MPI_INT, MPI_COMM_WORLD);
  MPI_Type_free(&pair);
  return program.finish();
}
