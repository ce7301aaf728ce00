// The names of libcuda.so.1 by which a host waits, and those that such a program needs beside them: each is the call of the runtime, whose
// handles and numbers of errors are the same. For programs that call both; there are no contexts, modules or memory of the driver.
#include <dlfcn.h>

#include <cstddef>
#include <initializer_list>

namespace {

using Stream = void*;
using Event = void*;

/// The runtime that the process uses. Not by its global names: what is preloaded stands before those, and has seen the call already.
void* runtime() {
  static void* const found = [] {
    for (const int mode : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW})
      for (const char* name : {"libcudart.so.13", "libcudart.so.12"})
        if (void* handle = dlopen(name, mode); handle != nullptr) return handle;
    return static_cast<void*>(nullptr);
  }();
  return found;
}

template <class Function>
Function find(const char* name) {
  return runtime() == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(runtime(), name));
}

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kNoDevice = 100;

}  // namespace

// NOLINTBEGIN: the names and shapes are CUDA's
#define DRIVER_CALL(name, runtime_name, params, args)                       \
  extern "C" __attribute__((visibility("default"))) int name params {       \
    static auto* const real = find<int(*) params>(#runtime_name);           \
    return real == nullptr ? kNoDevice : real args;                         \
  }
#define DRIVER_STREAM_CALL(name, runtime_name, params, args)                \
  DRIVER_CALL(name, runtime_name, params, args)                             \
  DRIVER_CALL(name##_ptsz, runtime_name##_ptsz, params, args)

DRIVER_CALL(cuCtxSynchronize, cudaDeviceSynchronize, (), ())
DRIVER_CALL(cuStreamCreate, cudaStreamCreateWithFlags, (Stream * stream, unsigned flags), (stream, flags))
DRIVER_CALL(cuStreamDestroy_v2, cudaStreamDestroy, (Stream stream), (stream))
DRIVER_STREAM_CALL(cuStreamSynchronize, cudaStreamSynchronize, (Stream stream), (stream))
DRIVER_STREAM_CALL(cuStreamQuery, cudaStreamQuery, (Stream stream), (stream))
DRIVER_STREAM_CALL(cuStreamWaitEvent, cudaStreamWaitEvent, (Stream stream, Event event, unsigned flags), (stream, event, flags))
DRIVER_CALL(cuEventCreate, cudaEventCreateWithFlags, (Event * event, unsigned flags), (event, flags))
DRIVER_CALL(cuEventDestroy_v2, cudaEventDestroy, (Event event), (event))
DRIVER_CALL(cuEventQuery, cudaEventQuery, (Event event), (event))
DRIVER_CALL(cuEventSynchronize, cudaEventSynchronize, (Event event), (event))
DRIVER_STREAM_CALL(cuEventRecord, cudaEventRecord, (Event event, Stream stream), (event, stream))
DRIVER_STREAM_CALL(cuEventRecordWithFlags, cudaEventRecordWithFlags, (Event event, Stream stream, unsigned flags), (event, stream, flags))
DRIVER_STREAM_CALL(cuStreamBeginCapture_v2, cudaStreamBeginCapture, (Stream stream, int mode), (stream, mode))
DRIVER_STREAM_CALL(cuStreamEndCapture, cudaStreamEndCapture, (Stream stream, void** graph), (stream, graph))
DRIVER_CALL(cuGraphInstantiateWithFlags, cudaGraphInstantiateWithFlags, (void** exec, void* graph, unsigned long long flags), (exec, graph, flags))
DRIVER_STREAM_CALL(cuGraphLaunch, cudaGraphLaunch, (void* exec, Stream stream), (exec, stream))
DRIVER_CALL(cuGraphExecDestroy, cudaGraphExecDestroy, (void* exec), (exec))
DRIVER_CALL(cuGraphDestroy, cudaGraphDestroy, (void* graph), (graph))
DRIVER_CALL(cuDriverGetVersion, cudaDriverGetVersion, (int* version), (version))
DRIVER_CALL(cuDeviceGetCount, cudaGetDeviceCount, (int* count), (count))

extern "C" __attribute__((visibility("default"))) int cuInit(unsigned flags) { return flags == 0 ? kSuccess : kInvalidValue; }
extern "C" __attribute__((visibility("default"))) int cuGraphInstantiate_v2(void** exec, void* graph, void*, char*, std::size_t) {
  return cuGraphInstantiateWithFlags(exec, graph, 0);
}
extern "C" __attribute__((visibility("default"))) int cuDeviceGet(int* device, int ordinal) {
  int count = 0;
  if (device == nullptr || cuDeviceGetCount(&count) != kSuccess || ordinal < 0 || ordinal >= count) return 101;  // invalid device
  *device = ordinal;
  return kSuccess;
}
// NOLINTEND
