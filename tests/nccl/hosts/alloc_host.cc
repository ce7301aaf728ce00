// Counts what is allocated while NCCL and CUDA are called: its malloc is the process's.
#include <cstddef>
#include <cstdio>

#include "cuda_api.h"
#include "nccl_api.h"

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

int main() {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  const auto stream = reinterpret_cast<cudaStream_t>(0x1000);
  const auto other = reinterpret_cast<cudaStream_t>(0x2000);
  const auto event = reinterpret_cast<cudaEvent_t>(0x3000);
  float buffer[4] = {};
  ncclComm_t comm = nullptr;
  const auto round = [&] {
    ncclAllReduce(buffer, buffer, 4, ncclFloat32, ncclSum, comm, stream);
    cudaEventRecord(event, stream);
    cudaStreamWaitEvent(other, event, 0);
    ncclGroupStart();
    ncclSend(buffer, 4, ncclFloat32, 1, comm, stream);
    ncclRecv(buffer, 4, ncclFloat32, 1, comm, stream);
    ncclGroupEnd();
    cudaEventSynchronize(event);
    cudaStreamSynchronize(stream);
    cudaStreamSynchronize(other);
  };
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  // The loader allocates where a function is looked up for the first time; nothing else may.
  ncclCommInitRank(&comm, 2, id, 0);
  round();
  ncclComm_t part = nullptr;
  ncclCommSplit(comm, 0, 0, &part, nullptr);
  ncclCommDestroy(part);
  const long before = g_allocations;
  for (int i = 0; i < 20000; ++i) {
    round();
    if (i >= 100) continue;
    ncclCommSplit(comm, 0, 0, &part, nullptr);
    ncclAllReduce(buffer, buffer, 4, ncclFloat32, ncclMax, part, stream);
    ncclCommDestroy(part);
  }
  std::printf("allocations %ld\n", g_allocations - before);
  return 0;
}
