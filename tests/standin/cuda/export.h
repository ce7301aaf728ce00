// How the calls of the CUDA runtime are defined here: exported, remembering their error for cudaGetLastError.
#pragma once

#include <atomic>

#include "cuda/engine.h"

#define CUDA_EXPORT extern "C" __attribute__((visibility("default")))

// The twin that programs call which were compiled with --default-stream per-thread: handle 0 means the thread's own stream.
#define CUDA_PTSZ_TWIN(name, suffix, params, ...) \
  CUDA_EXPORT cudaError_t name##suffix params { return name(__VA_ARGS__); }

namespace lockstep::standin {

/// Remembers a failure for cudaGetLastError and gives it back.
cudaError_t remember(cudaError_t error);

/// One line about this process on stderr, the first time.
void say_once(std::atomic<bool>& said, const char* what);

inline cudaStream_t per_thread(cudaStream_t stream) {
  return stream == nullptr ? reinterpret_cast<cudaStream_t>(kStreamPerThread) : stream;  // NOLINT
}

/// Issues work to the stream of `handle`.
template <class F>
cudaError_t issue_to(cudaStream_t handle, F function) {
  auto work = make_work(std::move(function));
  Lock lock(engine().mutex);
  Stream* stream = find_stream(lock, handle);
  if (stream == nullptr) return remember(kCudaInvalidHandle);
  issue(lock, *stream, std::move(work));
  return kCudaSuccess;
}

}  // namespace lockstep::standin
