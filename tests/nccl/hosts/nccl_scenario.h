// What the programs of nccl_host have in common: their rank, checks, the unique id through a file, and a communicator with buffers.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "nccl_api.h"

extern "C" {
int cudaSetDevice(int);
int cudaMalloc(void**, size_t);
int cudaStreamCreate(cudaStream_t*);
int cudaStreamSynchronize(cudaStream_t);
int cudaDeviceSynchronize();
int cudaEventCreate(cudaEvent_t*);
int cudaEventRecord(cudaEvent_t, cudaStream_t);
int cudaEventSynchronize(cudaEvent_t);
int cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned);
int cudaStreamBeginCapture(cudaStream_t, int);
int cudaStreamEndCapture(cudaStream_t, void**);
int cudaGraphInstantiate(void**, void*, unsigned long long);
int cudaGraphLaunch(void*, cudaStream_t);
// Of the driver.
int cuInit(unsigned);
int cuCtxSynchronize();
int cuStreamSynchronize(cudaStream_t);
int cuStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned);
int cuEventCreate(cudaEvent_t*, unsigned);
int cuEventRecord(cudaEvent_t, cudaStream_t);
int cuEventSynchronize(cudaEvent_t);
int cuStreamBeginCapture_v2(cudaStream_t, int);
int cuStreamEndCapture(cudaStream_t, void**);
int cuGraphInstantiateWithFlags(void**, void*, unsigned long long);
int cuGraphLaunch(void*, cudaStream_t);
}

inline int g_rank = 0;
inline int g_ranks = 1;
inline std::string g_directory;

inline void must(bool holds, const char* what, int value = 0) {
  if (holds) return;
  std::fprintf(stderr, "rank %d: %s: %d\n", g_rank, what, value);
  _exit(1);
}
#define NCCL(call)                                              \
  do {                                                          \
    const ncclResult_t result_ = (call);                        \
    must(result_ == ncclSuccess, #call, static_cast<int>(result_)); \
  } while (false)
#define CUDA(call)                        \
  do {                                    \
    const int result_ = (call);           \
    must(result_ == 0, #call, result_);   \
  } while (false)

inline ncclUniqueId shared_id(const std::string& name) {
  ncclUniqueId id{};
  const std::string path = g_directory + "/" + name;
  if (g_rank == 0) {
    NCCL(ncclGetUniqueId(&id));
    const std::string partial = path + ".new";
    FILE* file = std::fopen(partial.c_str(), "wb");
    must(file != nullptr && std::fwrite(&id, sizeof id, 1, file) == 1, "write id");
    std::fclose(file);
    must(std::rename(partial.c_str(), path.c_str()) == 0, "rename id");
    return id;
  }
  for (int tries = 0; tries < 2000; ++tries) {
    if (FILE* file = std::fopen(path.c_str(), "rb")) {
      const bool read = std::fread(&id, sizeof id, 1, file) == 1;
      std::fclose(file);
      must(read, "read id");
      return id;
    }
    usleep(5000);
  }
  must(false, "no id");
  return id;
}

struct Rank {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  void* from = nullptr;
  void* to = nullptr;

  Rank() {
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc(&from, 1 << 16));
    CUDA(cudaMalloc(&to, 1 << 16));
    NCCL(ncclCommInitRank(&comm, g_ranks, shared_id("world"), g_rank));
  }
  void all_reduce(size_t count = 64) { NCCL(ncclAllReduce(from, to, count, ncclFloat32, ncclSum, comm, stream)); }
  void end() {
    CUDA(cudaStreamSynchronize(stream));
    NCCL(ncclCommDestroy(comm));
  }
};

inline void wait_until_made(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  for (int tries = 0; tries < 2000 && state == ncclInProgress; ++tries) {
    NCCL(ncclCommGetAsyncError(comm, &state));
    usleep(1000);
  }
  must(state == ncclSuccess, "made", static_cast<int>(state));
}

/// Those of nccl_changes.cc; false: no such scenario.
bool run_change(std::string_view scenario);
