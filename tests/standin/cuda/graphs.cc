// Stream capture and graphs. A graph is its captured work in the order of issue; a launch runs it in that order on one stream.
#include <algorithm>

#include "cuda/export.h"

using namespace lockstep::standin;

namespace {

using Nodes = std::vector<std::shared_ptr<Work>>;
enum CaptureStatus : int { kCaptureNone = 0, kCaptureActive = 1, kCaptureInvalidated = 2 };

Nodes& nodes_of(cudaGraph_t graph) { return *reinterpret_cast<Nodes*>(graph); }            // NOLINT
Nodes& nodes_of(cudaGraphExec_t graph) { return *reinterpret_cast<Nodes*>(graph); }        // NOLINT

cudaError_t capture_info(cudaStream_t handle, int* status, unsigned long long* id) {
  Lock lock(engine().mutex);
  const Stream* stream = find_stream(lock, handle);
  if (stream == nullptr) return remember(kCudaInvalidHandle);
  const Capture* capture = stream->capture;
  if (status != nullptr)
    *status = capture == nullptr ? kCaptureNone : capture->invalidated ? kCaptureInvalidated : kCaptureActive;
  if (id != nullptr && capture != nullptr) *id = capture->id;
  return kCudaSuccess;
}

}  // namespace

CUDA_EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t handle, int /*mode*/) {
  Lock lock(engine().mutex);
  Stream* stream = find_stream(lock, handle);
  if (stream == nullptr) return remember(kCudaInvalidHandle);
  if (stream->is_null) return remember(kCudaStreamCaptureUnsupported);
  if (stream->capture != nullptr) return remember(kCudaIllegalState);
  stream->capture = new Capture;
  stream->capture->id = ++engine().captures;
  stream->capture->origin = stream;
  stream->capture->streams = {stream};
  return kCudaSuccess;
}
CUDA_PTSZ_TWIN(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, int mode), per_thread(stream), mode)

CUDA_EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  Lock lock(engine().mutex);
  const Stream* stream = find_stream(lock, handle);
  if (stream == nullptr) return remember(kCudaInvalidHandle);
  Capture* capture = stream->capture;
  if (capture == nullptr || capture->origin != stream) return remember(kCudaIllegalState);
  for (Stream* part : capture->streams) part->capture = nullptr;
  const bool invalidated = capture->invalidated;
  if (graph != nullptr)
    *graph = invalidated ? nullptr : reinterpret_cast<cudaGraph_t>(new Nodes(std::move(capture->nodes)));  // NOLINT
  delete capture;
  return invalidated ? remember(kCudaStreamCaptureInvalidated) : kCudaSuccess;
}
CUDA_PTSZ_TWIN(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t* graph), per_thread(stream), graph)

CUDA_EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int* status) {
  return status == nullptr ? remember(kCudaInvalidValue) : capture_info(stream, status, nullptr);
}
CUDA_PTSZ_TWIN(cudaStreamIsCapturing, _ptsz, (cudaStream_t stream, int* status), per_thread(stream), status)

// The parts of a graph are not shown: there are none to ask for.
#if LOCKSTEP_CUDART_MAJOR >= 13
CUDA_EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, int* status, unsigned long long* id, cudaGraph_t* graph,
                                                 const void** dependencies, const void** edges, std::size_t* count) {
  if (graph != nullptr) *graph = nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return capture_info(stream, status, id);
}
CUDA_PTSZ_TWIN(cudaStreamGetCaptureInfo, _ptsz,
               (cudaStream_t stream, int* status, unsigned long long* id, cudaGraph_t* graph, const void** dependencies,
                const void** edges, std::size_t* count),
               per_thread(stream), status, id, graph, dependencies, edges, count)
#else
CUDA_EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, int* status, unsigned long long* id) {
  return capture_info(stream, status, id);
}
CUDA_PTSZ_TWIN(cudaStreamGetCaptureInfo, _ptsz, (cudaStream_t stream, int* status, unsigned long long* id),
               per_thread(stream), status, id)
CUDA_EXPORT cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, int* status, unsigned long long* id,
                                                    cudaGraph_t* graph, const void** dependencies, std::size_t* count) {
  if (graph != nullptr) *graph = nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (count != nullptr) *count = 0;
  return capture_info(stream, status, id);
}
CUDA_PTSZ_TWIN(cudaStreamGetCaptureInfo_v2, _ptsz,
               (cudaStream_t stream, int* status, unsigned long long* id, cudaGraph_t* graph, const void** dependencies,
                std::size_t* count),
               per_thread(stream), status, id, graph, dependencies, count)
#endif

CUDA_EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(int* mode) {
  static thread_local int current = 0;
  if (mode == nullptr) return remember(kCudaInvalidValue);
  std::swap(*mode, current);
  return kCudaSuccess;
}

CUDA_EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long /*flags*/) {
  if (executable == nullptr || graph == nullptr) return remember(kCudaInvalidValue);
  *executable = reinterpret_cast<cudaGraphExec_t>(new Nodes(nodes_of(graph)));  // NOLINT
  return kCudaSuccess;
}
CUDA_EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                      unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

CUDA_EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  if (executable == nullptr) return remember(kCudaInvalidValue);
  Lock lock(engine().mutex);
  Stream* stream = find_stream(lock, handle);
  if (stream == nullptr) return remember(kCudaInvalidHandle);
  for (const std::shared_ptr<Work>& node : nodes_of(executable)) issue(lock, *stream, node);
  return kCudaSuccess;
}
CUDA_PTSZ_TWIN(cudaGraphLaunch, _ptsz, (cudaGraphExec_t graph, cudaStream_t stream), graph, per_thread(stream))

CUDA_EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return kCudaSuccess; }
CUDA_PTSZ_TWIN(cudaGraphUpload, _ptsz, (cudaGraphExec_t graph, cudaStream_t stream), graph, stream)

CUDA_EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void** nodes, std::size_t* count) {
  if (graph == nullptr || count == nullptr || nodes != nullptr) return remember(kCudaInvalidValue);
  *count = nodes_of(graph).size();
  return kCudaSuccess;
}

CUDA_EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Nodes*>(graph);  // NOLINT
  return kCudaSuccess;
}

CUDA_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete reinterpret_cast<Nodes*>(graph);  // NOLINT
  return kCudaSuccess;
}
