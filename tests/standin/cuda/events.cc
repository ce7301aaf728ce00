// Event calls of the CUDA runtime. An event is a position of a stream, and the time at which it was passed.
#include <algorithm>
#include <chrono>
#include <set>

#include "cuda/export.h"

using namespace lockstep::standin;

namespace {

constexpr unsigned kEventDisableTiming = 2;

std::set<const Event*>& events() {
  static auto* all = new std::set<const Event*>;
  return *all;
}

Event* find_event(cudaEvent_t handle) {
  auto* event = reinterpret_cast<Event*>(handle);  // NOLINT
  return events().contains(event) ? event : nullptr;
}

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

}  // namespace

CUDA_EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  if (out == nullptr) return remember(kCudaInvalidValue);
  auto* event = new Event;
  event->timed = (flags & kEventDisableTiming) == 0;
  Lock lock(engine().mutex);
  events().insert(event);
  *out = reinterpret_cast<cudaEvent_t>(event);  // NOLINT
  return kCudaSuccess;
}

CUDA_EXPORT cudaError_t cudaEventCreate(cudaEvent_t* out) { return cudaEventCreateWithFlags(out, 0); }

CUDA_EXPORT cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  Lock lock(engine().mutex);
  Event* event = find_event(handle);
  if (event == nullptr) return remember(kCudaInvalidHandle);
  events().erase(event);
  delete event;
  return kCudaSuccess;
}

CUDA_EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle, unsigned) {
  auto stamp = std::make_shared<std::uint64_t>(0);
  auto work = make_work([stamp] { *stamp = now_ns(); });
  Lock lock(engine().mutex);
  Event* event = find_event(handle);
  Stream* stream = find_stream(lock, stream_handle);
  if (event == nullptr || stream == nullptr) return remember(kCudaInvalidHandle);
  event->recorded = true;
  event->capture_id = stream->capture == nullptr ? 0 : stream->capture->id;
  event->stamp_ns = stamp;
  event->at = issue(lock, *stream, std::move(work));
  return kCudaSuccess;
}
CUDA_PTSZ_TWIN(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned flags), event,
               per_thread(stream), flags)

CUDA_EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}
CUDA_PTSZ_TWIN(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), event, per_thread(stream))

CUDA_EXPORT cudaError_t cudaEventQuery(cudaEvent_t handle) {
  Lock lock(engine().mutex);
  const Event* event = find_event(handle);
  if (event == nullptr) return remember(kCudaInvalidHandle);
  return passed(event->at) ? kCudaSuccess : kCudaNotReady;
}

CUDA_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  Lock lock(engine().mutex);
  const Event* event = find_event(handle);
  if (event == nullptr) return remember(kCudaInvalidHandle);
  wait_for(lock, {event->at}, true);
  return kCudaSuccess;
}

CUDA_EXPORT cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle) {
  Lock lock(engine().mutex);
  const Event* start = find_event(start_handle);
  const Event* end = find_event(end_handle);
  if (start == nullptr || end == nullptr || !start->recorded || !end->recorded || !start->timed || !end->timed)
    return remember(kCudaInvalidHandle);
  if (!passed(start->at) || !passed(end->at)) return kCudaNotReady;
  *milliseconds = static_cast<float>(static_cast<double>(*end->stamp_ns) - static_cast<double>(*start->stamp_ns)) / 1e6F;
  return kCudaSuccess;
}
CUDA_EXPORT cudaError_t cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return cudaEventElapsedTime(milliseconds, start, end);
}

/// A stream that waits for an event of a capture joins the capture.
CUDA_EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned) {
  Lock lock(engine().mutex);
  const Event* event = find_event(handle);
  Stream* stream = find_stream(lock, stream_handle);
  if (event == nullptr || stream == nullptr) return remember(kCudaInvalidHandle);
  if (event->capture_id == 0) {
    if (stream->capture != nullptr && !passed(event->at)) return remember(kCudaStreamCaptureIsolation);
    if (stream->capture == nullptr && !passed(event->at)) stream->pending.push_back(event->at);
    return kCudaSuccess;
  }
  for (Stream* other : engine().streams) {
    if (other->capture == nullptr || other->capture->id != event->capture_id) continue;
    if (stream->capture == nullptr) {
      stream->capture = other->capture;
      stream->capture->streams.push_back(stream);
    }
    return kCudaSuccess;
  }
  return kCudaSuccess;  // of a capture that has ended: nothing to wait for
}
CUDA_PTSZ_TWIN(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned flags), per_thread(stream), event,
               flags)
