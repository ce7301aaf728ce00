// The usual program: MPI starts it and hands the unique id round, NCCL does the rest. Rank `skip` leaves one call out.
//
// usage: mpirun -n N under_mpi [SKIPPER]
#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int skipper = argc > 1 ? std::atoi(argv[1]) : -1;
  ncclUniqueId id;
  if (rank == 0) ncclGetUniqueId(&id);
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (cudaSetDevice(rank) != cudaSuccess) return 1;
  ncclComm_t comm;
  if (ncclCommInitRank(&comm, ranks, id, rank) != ncclSuccess) return 1;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  float* data = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&data), sizeof(float));
  const float one = 1;
  cudaMemcpyAsync(data, &one, sizeof one, cudaMemcpyHostToDevice, stream);
  for (int step = 0; step < 2; ++step)
    if (step == 0 || rank != skipper) ncclAllReduce(data, data, 1, ncclFloat, ncclSum, comm, stream);
  float result = 0;
  cudaMemcpyAsync(&result, data, sizeof result, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  std::printf("rank %d: %g\n", rank, static_cast<double>(result));
  ncclCommDestroy(comm);
  MPI_Finalize();
  return 0;
}
