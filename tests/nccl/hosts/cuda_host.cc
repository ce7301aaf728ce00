// Calls every interposed function of the real CUDA runtime, which refuses them all without a driver, and prints what it gives: with the
// recorder before it and without. Linked against versioned names (cudaX@libcudart.so.13), which an unversioned definition satisfies.
#include <dlfcn.h>

#include <cstdio>

#include <cstddef>

struct CUstream_st;
struct CUevent_st;

extern "C" {
#define CUDA_CALL(name, params, args, what) [[gnu::weak]] int name params;
#include "cuda/functions.def"
#undef CUDA_CALL
int cudaGetLastError();
}

int main(int argc, char** argv) {
  // As a library that comes in later: the symbols of the program itself must not need it.
  if (argc > 1 && dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) == nullptr) {
    std::printf("%s\n", dlerror());
    return 1;
  }
  CUstream_st* stream = nullptr;
  CUevent_st* event = nullptr;
  int device = 0;
  unsigned flags = 0;
  void* graph = nullptr;
  void* exec = nullptr;
  char to[4] = {};
  const char from[4] = {};
  std::printf("%d\n", cudaSetDevice(device));
  std::printf("%d\n", cudaDeviceSynchronize());
  std::printf("%d %d\n", cudaStreamSynchronize(stream), cudaStreamSynchronize_ptsz(stream));
  std::printf("%d %d\n", cudaEventRecord(event, stream), cudaEventRecordWithFlags(event, stream, flags));
  std::printf("%d %d\n", cudaEventSynchronize(event), cudaStreamWaitEvent(stream, event, flags));
  std::printf("%d %d\n", cudaMemcpy(to, from, sizeof to, 0), cudaMemcpy(to, from, sizeof to, 99));
  std::printf("%d %d\n", cudaStreamBeginCapture(stream, 0), cudaStreamEndCapture(stream, &graph));
  std::printf("%d\n", cudaGraphInstantiateWithFlags(&exec, graph, 0));
  std::printf("%d\n", cudaGraphLaunch(exec, stream));
  std::printf("%d\n", cudaGetLastError());
  return 0;
}
