// Loops on the GPU: one thread for each index. Memory is managed, so that the host may read results and NCCL
// takes the same pointers; each run is waited for, because this is a reference and not a race.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace zero1 {

inline void check_cuda(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code));
}

template <class Functor>
__global__ void run_kernel(std::size_t n, Functor functor) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) functor(i);
}

struct CudaCompute {
  static constexpr const char* kName = "cuda";
  static void* allocate(std::size_t bytes) {
    void* memory = nullptr;
    check_cuda(cudaMallocManaged(&memory, bytes), "cudaMallocManaged");
    check_cuda(cudaMemset(memory, 0, bytes), "cudaMemset");
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return memory;
  }
  static void release(void* memory) noexcept { cudaFree(memory); }
  template <class Functor>
  static void run(std::size_t n, const Functor& functor) {
    if (n == 0) return;
    constexpr unsigned kThreads = 128;
    run_kernel<<<static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads>>>(n, functor);
    check_cuda(cudaGetLastError(), "kernel launch");
    check_cuda(cudaDeviceSynchronize(), "kernel");
  }
};

}  // namespace zero1
