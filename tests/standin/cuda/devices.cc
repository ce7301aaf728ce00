// Device and error calls of the CUDA runtime, and what programs built by nvcc call although they have no kernels.
#include <cstdio>
#include <cstring>
#include <utility>

#include "cuda/export.h"

using namespace lockstep::standin;

namespace {

thread_local cudaError_t t_last_error = 0;

struct Named {
  int code;
  const char* name;
  const char* text;
};

constexpr Named kErrors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {209, "cudaErrorNoKernelImageForDevice", "no kernel image is available for execution on the device"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {401, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {600, "cudaErrorNotReady", "device not ready"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {900, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"},
    {904, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {905, "cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream"},
};

const Named* find_error(int code) {
  for (const Named& error : kErrors)
    if (error.code == code) return &error;
  return nullptr;
}

}  // namespace

namespace lockstep::standin {

cudaError_t remember(cudaError_t error) {
  if (error != kCudaSuccess) t_last_error = error;
  return error;
}

}  // namespace lockstep::standin

CUDA_EXPORT const char* cudaGetErrorName(cudaError_t error) {
  const Named* found = find_error(error);
  return found == nullptr ? "unrecognized error code" : found->name;
}
CUDA_EXPORT const char* cudaGetErrorString(cudaError_t error) {
  const Named* found = find_error(error);
  return found == nullptr ? "unrecognized error code" : found->text;
}
CUDA_EXPORT cudaError_t cudaGetLastError() { return std::exchange(t_last_error, 0); }
CUDA_EXPORT cudaError_t cudaPeekAtLastError() { return t_last_error; }

CUDA_EXPORT cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return remember(kCudaInvalidValue);
  *count = device_count();
  return kCudaSuccess;
}
CUDA_EXPORT cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= device_count()) return remember(kCudaInvalidDevice);
  set_current_device(device);
  return kCudaSuccess;
}
CUDA_EXPORT cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return device < 0 || device >= device_count() ? remember(kCudaInvalidDevice) : kCudaSuccess;
}
CUDA_EXPORT cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return remember(kCudaInvalidValue);
  *device = current_device();
  return kCudaSuccess;
}
CUDA_EXPORT cudaError_t cudaDeviceReset() { return kCudaSuccess; }
CUDA_EXPORT cudaError_t cudaSetDeviceFlags(unsigned) { return kCudaSuccess; }
CUDA_EXPORT cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return remember(kCudaInvalidValue);
  *version = LOCKSTEP_CUDART_MAJOR * 1000;
  return kCudaSuccess;
}
CUDA_EXPORT cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
CUDA_EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return kCudaSuccess;
}

CUDA_EXPORT cudaError_t cudaDeviceGetAttribute(int* value, int attribute, int device) {
  if (value == nullptr) return remember(kCudaInvalidValue);
  if (device < 0 || device >= device_count()) return remember(kCudaInvalidDevice);
  switch (attribute) {
    case 1: *value = 1024; break;  // threads of a block
    case 10: *value = 32; break;   // a warp
    case 16: *value = 132; break;  // multiprocessors
    case 41: *value = 1; break;    // unified addressing
    case 75: *value = 9; break;    // compute capability
    default: *value = 0;
  }
  return kCudaSuccess;
}

/// The name is at the beginning in every version; the rest, whose size differs, is not written.
CUDA_EXPORT cudaError_t cudaGetDeviceProperties(char* properties, int device) {
  if (properties == nullptr) return remember(kCudaInvalidValue);
  if (device < 0 || device >= device_count()) return remember(kCudaInvalidDevice);
  std::memset(properties, 0, 256);
  std::snprintf(properties, 256, "Lockstep stand-in %d", device);
  return kCudaSuccess;
}
CUDA_EXPORT cudaError_t cudaGetDeviceProperties_v2(char* properties, int device) {
  return cudaGetDeviceProperties(properties, device);
}

CUDA_EXPORT cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  if (text == nullptr || size < 13) return remember(kCudaInvalidValue);
  if (device < 0 || device >= device_count()) return remember(kCudaInvalidDevice);
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", static_cast<unsigned>(device) & 0xffU);
  return kCudaSuccess;
}
CUDA_EXPORT cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  if (can == nullptr) return remember(kCudaInvalidValue);
  *can = 1;
  return kCudaSuccess;
}
CUDA_EXPORT cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return kCudaSuccess; }
CUDA_EXPORT cudaError_t cudaDeviceDisablePeerAccess(int) { return kCudaSuccess; }

namespace {

void say_no_kernels() {
  static std::atomic<bool> said{false};
  say_once(said, "launches kernels, which the stand-in for the CUDA runtime leaves out: data is not what it would be");
}

}  // namespace

// nvcc's start-up code. Kernels cannot be run.
CUDA_EXPORT void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
CUDA_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}
CUDA_EXPORT void __cudaUnregisterFatBinary(void**) {}
CUDA_EXPORT void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*) {}
CUDA_EXPORT void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
CUDA_EXPORT unsigned __cudaPushCallConfiguration(...) {
  say_no_kernels();
  return 1;  // the caller then leaves the kernel out
}
CUDA_EXPORT cudaError_t __cudaPopCallConfiguration(...) { return remember(kCudaNoKernelImage); }
CUDA_EXPORT cudaError_t cudaLaunchKernel(...) {
  say_no_kernels();
  return remember(kCudaNoKernelImage);
}
CUDA_EXPORT cudaError_t cudaLaunchKernel_ptsz(...) {
  say_no_kernels();
  return remember(kCudaNoKernelImage);
}
