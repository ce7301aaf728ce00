// Memory calls of the CUDA runtime. Device memory is host memory of which one can ask whose it is.
#include <cstdlib>
#include <cstring>
#include <map>

#include "cuda/export.h"

using namespace lockstep::standin;

namespace {

struct Block {
  std::size_t bytes = 0;
  MemoryType type = kMemoryDevice;
  int device = 0;
  bool ours = true;
};

std::map<std::uintptr_t, Block>& blocks() {
  static auto* all = new std::map<std::uintptr_t, Block>;
  return *all;
}

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

cudaError_t allocate(void** out, std::size_t bytes, MemoryType type) {
  if (out == nullptr) return remember(kCudaInvalidValue);
  *out = nullptr;
  if (bytes == 0) return kCudaSuccess;
  constexpr std::size_t kAlignment = 256;
  if (bytes > SIZE_MAX - kAlignment) return remember(kCudaMemoryAllocation);
  void* memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (memory == nullptr) return remember(kCudaMemoryAllocation);
  Lock lock(engine().mutex);
  blocks()[address(memory)] = {bytes, type, current_device()};
  *out = memory;
  return kCudaSuccess;
}

/// `wait`: what the streams of the device have may still use the block, as the real call waits for it.
cudaError_t release(void* pointer, bool wait) {
  if (pointer == nullptr) return kCudaSuccess;
  Lock lock(engine().mutex);
  const auto found = blocks().find(address(pointer));
  if (found == blocks().end() || !found->second.ours) return remember(kCudaInvalidValue);
  const int device = found->second.device;
  blocks().erase(found);
  if (wait) {
    std::vector<Position> positions;
    for (const Stream* stream : engine().streams)
      if (stream->device == device) positions.push_back(tail_of(*stream));
    wait_for(lock, positions, true);
  }
  lock.unlock();
  std::free(pointer);
  return kCudaSuccess;
}

/// Synchronous forms go through the default stream and wait for it.
template <class F>
cudaError_t run_now(cudaStream_t handle, F function) {
  auto work = make_work(std::move(function));
  Lock lock(engine().mutex);
  Stream* stream = find_stream(lock, handle);
  wait_for(lock, {issue(lock, *stream, std::move(work))}, true);
  return kCudaSuccess;
}

}  // namespace

CUDA_EXPORT cudaError_t cudaMalloc(void** out, std::size_t bytes) { return allocate(out, bytes, kMemoryDevice); }
CUDA_EXPORT cudaError_t cudaMallocManaged(void** out, std::size_t bytes, unsigned) {
  return allocate(out, bytes, kMemoryManaged);
}
CUDA_EXPORT cudaError_t cudaMallocHost(void** out, std::size_t bytes) { return allocate(out, bytes, kMemoryHost); }
CUDA_EXPORT cudaError_t cudaHostAlloc(void** out, std::size_t bytes, unsigned) { return allocate(out, bytes, kMemoryHost); }
CUDA_EXPORT cudaError_t cudaFree(void* pointer) { return release(pointer, true); }
CUDA_EXPORT cudaError_t cudaFreeHost(void* pointer) { return release(pointer, true); }
CUDA_EXPORT cudaError_t cudaMallocAsync(void** out, std::size_t bytes, cudaStream_t) {
  return allocate(out, bytes, kMemoryDevice);
}
CUDA_PTSZ_TWIN(cudaMallocAsync, _ptsz, (void** out, std::size_t bytes, cudaStream_t stream), out, bytes, stream)
CUDA_EXPORT cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return issue_to(stream, [=] { release(pointer, false); });
}
CUDA_PTSZ_TWIN(cudaFreeAsync, _ptsz, (void* pointer, cudaStream_t stream), pointer, per_thread(stream))

CUDA_EXPORT cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  if (pointer == nullptr || bytes == 0) return remember(kCudaInvalidValue);
  Lock lock(engine().mutex);
  blocks()[address(pointer)] = {bytes, kMemoryHost, current_device(), false};
  return kCudaSuccess;
}
CUDA_EXPORT cudaError_t cudaHostUnregister(void* pointer) {
  Lock lock(engine().mutex);
  const auto found = blocks().find(address(pointer));
  if (found == blocks().end() || found->second.ours) return remember(kCudaInvalidValue);
  blocks().erase(found);
  return kCudaSuccess;
}
CUDA_EXPORT cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  if (device == nullptr) return remember(kCudaInvalidValue);
  *device = host;
  return kCudaSuccess;
}

CUDA_EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return remember(kCudaInvalidValue);
  Lock lock(engine().mutex);
  auto found = blocks().upper_bound(address(pointer));
  const bool known = found != blocks().begin() &&
                     address(pointer) - (--found)->first < found->second.bytes;
  const Block block = known ? found->second : Block{0, kMemoryUnregistered, -2, false};
  attributes->type = block.type;
  attributes->device = block.device;
  auto* bytes = const_cast<void*>(pointer);  // NOLINT
  attributes->devicePointer = known ? bytes : nullptr;
  attributes->hostPointer = known && block.type == kMemoryDevice ? nullptr : bytes;
  return kCudaSuccess;
}

CUDA_EXPORT cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  constexpr std::size_t kTotal = std::size_t{16} << 30;
  if (free_bytes != nullptr) *free_bytes = kTotal / 2;
  if (total_bytes != nullptr) *total_bytes = kTotal;
  return kCudaSuccess;
}

CUDA_EXPORT cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, cudaStream_t stream) {
  if (bytes > 0 && (to == nullptr || from == nullptr)) return remember(kCudaInvalidValue);
  return issue_to(stream, [=] { std::memmove(to, from, bytes); });
}
CUDA_PTSZ_TWIN(cudaMemcpyAsync, _ptsz, (void* to, const void* from, std::size_t bytes, int kind, cudaStream_t stream), to, from,
               bytes, kind, per_thread(stream))

CUDA_EXPORT cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, 0, stream);
}

CUDA_EXPORT cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, int) {
  if (bytes > 0 && (to == nullptr || from == nullptr)) return remember(kCudaInvalidValue);
  return run_now(nullptr, [=] { std::memmove(to, from, bytes); });
}
CUDA_EXPORT cudaError_t cudaMemcpy_ptds(void* to, const void* from, std::size_t bytes, int) {
  if (bytes > 0 && (to == nullptr || from == nullptr)) return remember(kCudaInvalidValue);
  return run_now(per_thread(nullptr), [=] { std::memmove(to, from, bytes); });
}
CUDA_EXPORT cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return cudaMemcpy(to, from, bytes, 0);
}

CUDA_EXPORT cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (bytes > 0 && to == nullptr) return remember(kCudaInvalidValue);
  return issue_to(stream, [=] { std::memset(to, value, bytes); });
}
CUDA_PTSZ_TWIN(cudaMemsetAsync, _ptsz, (void* to, int value, std::size_t bytes, cudaStream_t stream), to, value, bytes,
               per_thread(stream))
CUDA_EXPORT cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  if (bytes > 0 && to == nullptr) return remember(kCudaInvalidValue);
  return run_now(nullptr, [=] { std::memset(to, value, bytes); });
}
CUDA_EXPORT cudaError_t cudaMemset_ptds(void* to, int value, std::size_t bytes) {
  if (bytes > 0 && to == nullptr) return remember(kCudaInvalidValue);
  return run_now(per_thread(nullptr), [=] { std::memset(to, value, bytes); });
}
