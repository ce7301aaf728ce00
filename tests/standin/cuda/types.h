// The CUDA runtime's types as its binary interface has them, for machines without its headers.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

using cudaError_t = int;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using cudaGraph_t = CUgraph_st*;
using cudaGraphExec_t = CUgraphExec_st*;
using cudaHostFn_t = void (*)(void* user_data);
using cudaStreamCallback_t = void (*)(cudaStream_t stream, cudaError_t status, void* user_data);

struct cudaPointerAttributes {
  int type;
  int device;
  void* devicePointer;
  void* hostPointer;
  long reserved[8];  // CUDA 13 has it, 12 does not: written only there
};

namespace lockstep::standin {

enum CudaError : int {
  kCudaSuccess = 0,
  kCudaInvalidValue = 1,
  kCudaMemoryAllocation = 2,
  kCudaInvalidDevice = 101,
  kCudaNoKernelImage = 209,
  kCudaInvalidHandle = 400,
  kCudaNotReady = 600,
  kCudaNotSupported = 801,
  kCudaStreamCaptureUnsupported = 900,
  kCudaStreamCaptureInvalidated = 901,
  kCudaStreamCaptureUnjoined = 904,
  kCudaStreamCaptureIsolation = 905,
  kCudaIllegalState = 401,
};

enum MemoryType : int { kMemoryUnregistered = 0, kMemoryHost = 1, kMemoryDevice = 2, kMemoryManaged = 3 };
enum StreamFlags : unsigned { kStreamNonBlocking = 1 };

inline constexpr std::uintptr_t kStreamLegacy = 1;
inline constexpr std::uintptr_t kStreamPerThread = 2;

}  // namespace lockstep::standin
