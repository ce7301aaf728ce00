// Stream calls of the CUDA runtime.
#include <algorithm>

#include "cuda/export.h"

using namespace lockstep::standin;

CUDA_EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority) {
  if (out == nullptr || flags > kStreamNonBlocking) return remember(kCudaInvalidValue);
  Lock lock(engine().mutex);
  Stream* stream = new_stream(lock, current_device(), flags, std::clamp(priority, -5, 0));
  *out = reinterpret_cast<cudaStream_t>(stream);  // NOLINT
  return kCudaSuccess;
}

CUDA_EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return cudaStreamCreateWithPriority(out, flags, 0);
}

CUDA_EXPORT cudaError_t cudaStreamCreate(cudaStream_t* out) { return cudaStreamCreateWithPriority(out, 0, 0); }

/// What the stream has is still done.
CUDA_EXPORT cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  Lock lock(engine().mutex);
  Stream* stream = find_stream(lock, handle);
  if (stream == nullptr || stream->is_null) return remember(kCudaInvalidHandle);
  stream->destroyed = true;
  stream->ready.notify_one();
  return kCudaSuccess;
}

CUDA_EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Lock lock(engine().mutex);
  Stream* stream = find_stream(lock, handle);
  if (stream == nullptr) return remember(kCudaInvalidHandle);
  if (stream->capture != nullptr) {
    stream->capture->invalidated = true;
    return remember(kCudaStreamCaptureUnsupported);
  }
  std::vector<Position> positions = stream->pending;
  positions.push_back(tail_of(*stream));
  if (stream->is_null)
    for (const Stream* other : engine().streams)
      if (other->device == stream->device && (other->flags & kStreamNonBlocking) == 0)
        positions.push_back(tail_of(*other));
  wait_for(lock, positions, true);
  return kCudaSuccess;
}
CUDA_PTSZ_TWIN(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), per_thread(stream))

CUDA_EXPORT cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Lock lock(engine().mutex);
  Stream* stream = find_stream(lock, handle);
  if (stream == nullptr) return remember(kCudaInvalidHandle);
  if (stream->capture != nullptr) return remember(kCudaStreamCaptureUnsupported);
  const bool waits = !std::ranges::all_of(stream->pending, passed);
  return stream->done == stream->issued && !waits ? kCudaSuccess : kCudaNotReady;
}
CUDA_PTSZ_TWIN(cudaStreamQuery, _ptsz, (cudaStream_t stream), per_thread(stream))

CUDA_EXPORT cudaError_t cudaDeviceSynchronize() {
  Lock lock(engine().mutex);
  std::vector<Position> positions;
  for (const Stream* stream : engine().streams) {
    if (stream->device != current_device()) continue;
    if (stream->capture != nullptr) return remember(kCudaStreamCaptureUnsupported);
    positions.push_back(tail_of(*stream));
  }
  wait_for(lock, positions, true);
  return kCudaSuccess;
}

namespace {

template <class F>
cudaError_t ask(cudaStream_t handle, F answer) {
  Lock lock(engine().mutex);
  const Stream* stream = find_stream(lock, handle);
  if (stream == nullptr) return remember(kCudaInvalidHandle);
  answer(*stream);
  return kCudaSuccess;
}

}  // namespace

CUDA_EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return ask(handle, [=](const Stream& stream) { *priority = stream.priority; });
}
CUDA_PTSZ_TWIN(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int* priority), per_thread(stream), priority)

CUDA_EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return ask(handle, [=](const Stream& stream) { *flags = stream.flags; });
}
CUDA_PTSZ_TWIN(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned* flags), per_thread(stream), flags)

CUDA_EXPORT cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  return ask(handle, [=](const Stream& stream) { *id = stream.id; });
}
CUDA_PTSZ_TWIN(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long* id), per_thread(stream), id)

CUDA_EXPORT cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return ask(handle, [=](const Stream& stream) { *device = stream.device; });
}
CUDA_PTSZ_TWIN(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int* device), per_thread(stream), device)

CUDA_EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
  if (function == nullptr) return remember(kCudaInvalidValue);
  return issue_to(stream, [=] { function(user_data); });
}
CUDA_PTSZ_TWIN(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void* user_data), per_thread(stream),
               function, user_data)

CUDA_EXPORT cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* user_data, unsigned) {
  if (callback == nullptr) return remember(kCudaInvalidValue);
  return issue_to(stream, [=] { callback(stream, kCudaSuccess, user_data); });
}
CUDA_PTSZ_TWIN(cudaStreamAddCallback, _ptsz,
               (cudaStream_t stream, cudaStreamCallback_t callback, void* user_data, unsigned flags), per_thread(stream),
               callback, user_data, flags)
