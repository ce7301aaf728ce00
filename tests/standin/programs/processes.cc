// A program like any user's: one process per rank over NCCL, without kernels. It forks its ranks itself, checks its data, and says
// "rank R ok". Built against the real headers and libraries where they are, and run on the stand-in as it is.
//
// usage: processes RANKS [skip RANK]
#include <cuda_runtime.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CUDA(call)                                                                                \
  do {                                                                                            \
    if (const cudaError_t e = (call); e != cudaSuccess) {                                         \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e));                             \
      std::exit(1);                                                                               \
    }                                                                                             \
  } while (0)
#define NCCL(call)                                                                                \
  do {                                                                                            \
    if (const ncclResult_t e = (call); e != ncclSuccess) {                                        \
      std::fprintf(stderr, "%s: %s (%s)\n", #call, ncclGetErrorString(e), ncclGetLastError(nullptr)); \
      std::exit(1);                                                                               \
    }                                                                                             \
  } while (0)

namespace {

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "wrong data: %s\n", what);
  std::exit(11);
}

int run_rank(int rank, int ranks, const ncclUniqueId& id, int skipper) {
  CUDA(cudaSetDevice(rank));
  ncclComm_t comm;
  NCCL(ncclCommInitRank(&comm, ranks, id, rank));
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  constexpr int kCount = 100'000;  // more than one chunk
  float* data;
  CUDA(cudaMalloc(reinterpret_cast<void**>(&data), kCount * sizeof(float)));
  std::vector<float> host(kCount);
  for (int i = 0; i < kCount; ++i) host[static_cast<std::size_t>(i)] = static_cast<float>(rank + i % 7);
  CUDA(cudaMemcpyAsync(data, host.data(), kCount * sizeof(float), cudaMemcpyHostToDevice, stream));
  for (int step = 0; step < 3; ++step) {
    if (step == 1 && rank == skipper) continue;
    NCCL(ncclAllReduce(data, data, kCount, ncclFloat, ncclMax, comm, stream));
  }
  NCCL(ncclBroadcast(data, data, kCount, ncclFloat, 0, comm, stream));
  float* other;
  CUDA(cudaMalloc(reinterpret_cast<void**>(&other), kCount * sizeof(float)));
  const int next = (rank + 1) % ranks;
  const int previous = (rank + ranks - 1) % ranks;
  NCCL(ncclGroupStart());
  NCCL(ncclSend(data, kCount, ncclFloat, next, comm, stream));
  NCCL(ncclRecv(other, kCount, ncclFloat, previous, comm, stream));
  NCCL(ncclGroupEnd());
  CUDA(cudaMemcpyAsync(host.data(), other, kCount * sizeof(float), cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < kCount; ++i)
    expect(host[static_cast<std::size_t>(i)] == static_cast<float>(ranks - 1 + i % 7), "all_reduce, broadcast, ring");

  ncclComm_t half;
  NCCL(ncclCommSplit(comm, rank % 2, -rank, &half, nullptr));
  int half_ranks = 0;
  int half_rank = 0;
  NCCL(ncclCommCount(half, &half_ranks));
  NCCL(ncclCommUserRank(half, &half_rank));
  expect(half_ranks == (ranks + 1 - rank % 2) / 2, "size of a split");
  expect(half_rank == half_ranks - 1 - rank / 2, "rank in a split, by falling key");
  NCCL(ncclCommFinalize(half));
  NCCL(ncclCommDestroy(half));
  NCCL(ncclCommDestroy(comm));
  std::printf("rank %d ok\n", rank);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const int skipper = argc > 3 && std::strcmp(argv[2], "skip") == 0 ? std::atoi(argv[3]) : -1;
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      const int status = run_rank(rank, ranks, id, skipper);
      std::fflush(stdout);
      _exit(status);
    }
    children.push_back(child);
  }
  int worst = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code > worst) worst = code;
  }
  return worst;
}
