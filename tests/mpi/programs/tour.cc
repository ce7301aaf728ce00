// One call of many kinds, correct; what it prints does not depend on time. recording_test.cc knows what must
// be recorded.
#include <mpi.h>

#include <cstdio>
#include <vector>

namespace {

int g_rank = 0;
int g_ranks = 0;

void collectives() {
  double x = g_rank;
  double sum = 0;
  MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  std::vector<int> all(static_cast<std::size_t>(g_ranks));
  MPI_Allgather(&g_rank, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Gather(&g_rank, 1, MPI_INT, all.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Scatter(all.data(), 1, MPI_INT, &g_rank, 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::vector<int> counts(all.size(), 1);
  std::vector<int> places(all.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(i);
  std::vector<int> others(all.size());
  MPI_Alltoallv(all.data(), counts.data(), places.data(), MPI_INT, others.data(), counts.data(),
                places.data(), MPI_INT, MPI_COMM_WORLD);
  MPI_Scan(&g_rank, all.data(), 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (g_rank == 0) std::printf("sum %g scan %d\n", sum, all[0]);
}

void messages() {
  const int right = (g_rank + 1) % g_ranks;
  const int left = (g_rank + g_ranks - 1) % g_ranks;
  int value = g_rank;
  int got = -1;
  MPI_Request requests[2];
  MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&value, 1, MPI_INT, right, 7, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Sendrecv(&value, 1, MPI_INT, right, 8, &got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
  MPI_Isend(&value, 1, MPI_INT, right, 9, MPI_COMM_WORLD, &requests[0]);
  MPI_Message message;
  MPI_Mprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
  for (int flag = 0; flag == 0;) MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
  if (g_rank == 0) std::printf("from the left %d\n", got == left ? 1 : 0);
}

void communicators() {
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm grid = MPI_COMM_NULL;
  MPI_Comm pair = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, g_rank % 2, -g_rank, &half);
  MPI_Comm_set_name(half, "half");
  MPI_Barrier(half);
  MPI_Comm_dup(half, &copy);
  MPI_Barrier(copy);
  const int dims[1] = {g_ranks};
  const int periods[1] = {1};
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
  MPI_Barrier(grid);
  MPI_Group world;
  MPI_Group first;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int members[2] = {1, 0};
  MPI_Group_incl(world, 2, members, &first);
  if (g_rank < 2) {
    MPI_Comm_create_group(MPI_COMM_WORLD, first, 5, &pair);
    MPI_Barrier(pair);
    MPI_Comm_free(&pair);
  }
  MPI_Group_free(&first);
  MPI_Group_free(&world);
  MPI_Comm_free(&grid);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
}

// Six types that hold the same as twelve integers, or as three pairs of an integer and a double.
void datatypes() {
  MPI_Datatype row, rows, strided, picked, mixed, mixed3;
  MPI_Type_contiguous(4, MPI_INT, &row);
  MPI_Type_contiguous(3, row, &rows);
  MPI_Type_commit(&rows);
  MPI_Type_vector(3, 4, 5, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  const int lengths[3] = {2, 4, 6};
  const int places[3] = {0, 3, 9};
  MPI_Type_indexed(3, lengths, places, MPI_INT, &picked);
  MPI_Type_commit(&picked);
  const int blocks[2] = {1, 1};
  const MPI_Aint offsets[2] = {0, 8};
  const MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
  MPI_Type_create_struct(2, blocks, offsets, types, &mixed);
  MPI_Type_commit(&mixed);
  MPI_Type_contiguous(3, mixed, &mixed3);
  MPI_Type_commit(&mixed3);
  std::vector<int> buffer(64);
  MPI_Bcast(buffer.data(), 12, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Bcast(buffer.data(), 1, rows, 0, MPI_COMM_WORLD);
  MPI_Bcast(buffer.data(), 1, strided, 0, MPI_COMM_WORLD);
  MPI_Bcast(buffer.data(), 1, picked, 0, MPI_COMM_WORLD);
  std::vector<double> mixed_buffer(16);
  MPI_Bcast(mixed_buffer.data(), 3, mixed, 0, MPI_COMM_WORLD);
  MPI_Bcast(mixed_buffer.data(), 1, mixed3, 0, MPI_COMM_WORLD);
  for (MPI_Datatype* type : {&row, &rows, &strided, &picked, &mixed, &mixed3}) MPI_Type_free(type);
}

// An index list of many blocks; and a unit whose copies share a run where they meet: {i,d,i} twice is
// {i,d,2i,d,i}.
void long_datatypes() {
  constexpr int kBlocks = 5000;
  std::vector<int> lengths(kBlocks, 1);
  std::vector<int> places(kBlocks);
  for (int i = 0; i < kBlocks; ++i) places[static_cast<std::size_t>(i)] = 2 * i;
  MPI_Datatype sparse, three, six, spelled;
  MPI_Type_indexed(kBlocks, lengths.data(), places.data(), MPI_INT, &sparse);
  MPI_Type_commit(&sparse);
  const int ones[3] = {1, 1, 1};
  const MPI_Aint offsets[5] = {0, 8, 16, 24, 32};
  const MPI_Datatype types[5] = {MPI_INT, MPI_DOUBLE, MPI_INT, MPI_DOUBLE, MPI_INT};
  MPI_Type_create_struct(3, ones, offsets, types, &three);
  MPI_Type_contiguous(2, three, &six);
  MPI_Type_commit(&six);
  const int blocks[5] = {1, 1, 2, 1, 1};
  MPI_Type_create_struct(5, blocks, offsets, types, &spelled);
  MPI_Type_commit(&spelled);
  std::vector<double> buffer(2 * kBlocks);
  MPI_Bcast(buffer.data(), 1, sparse, 0, MPI_COMM_WORLD);
  MPI_Bcast(buffer.data(), 1, six, 0, MPI_COMM_WORLD);
  MPI_Bcast(buffer.data(), 1, spelled, 0, MPI_COMM_WORLD);
  for (MPI_Datatype* type : {&sparse, &three, &six, &spelled}) MPI_Type_free(type);
}

// What the analyzer has no rule for is recorded by its name, and what happens inside it is not recorded at
// all.
void opaque() {
  int value = g_rank;
  MPI_Win window;
  MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  MPI_Request persistent;
  MPI_Send_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &persistent);
  MPI_Start(&persistent);
  MPI_Wait(&persistent, MPI_STATUS_IGNORE);
  MPI_Request_free(&persistent);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
  collectives();
  messages();
  communicators();
  datatypes();
  long_datatypes();
  opaque();
  MPI_Finalize();
  return 0;
}
