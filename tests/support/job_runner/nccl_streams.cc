// Makes them at their first use.
#include "nccl_streams.h"

#include <algorithm>

namespace lockstep::testing {
namespace {

using namespace nccl;

constexpr unsigned kNonBlocking = 1;     // cudaStreamNonBlocking
constexpr unsigned kNoTiming = 2;        // cudaEventDisableTiming
constexpr int kThreadLocal = 1;          // cudaStreamCaptureModeThreadLocal
constexpr int kNoSuchGraph = 400;        // cudaErrorInvalidResourceHandle

}  // namespace

cudaStream_t NcclStreams::stream(const std::string& name) {
  const std::lock_guard lock(mutex_);
  cudaStream_t& found = streams_[name];
  if (found == nullptr) cudaStreamCreateWithFlags(&found, kNonBlocking);
  return found;
}

cudaEvent_t NcclStreams::event(const std::string& name) {
  const std::lock_guard lock(mutex_);
  cudaEvent_t& found = events_[name];
  if (found == nullptr) cudaEventCreateWithFlags(&found, kNoTiming);
  return found;
}

void NcclStreams::order(cudaStream_t first, cudaStream_t behind) {
  if (first == behind) return;
  cudaEvent_t between = nullptr;
  cudaEventCreateWithFlags(&between, kNoTiming);
  cudaEventRecord(between, first);
  cudaStreamWaitEvent(behind, between, 0);
  cudaEventDestroy(between);
}

int NcclStreams::capture(OpenCapture& capture, const std::string& graph, cudaStream_t stream) {
  if (!capture.open) {
    const int status = cudaStreamBeginCapture(stream, kThreadLocal);
    if (status == 0) capture = {.open = true, .graph = graph, .origin = stream, .joined = {}};
    return status;
  }
  if (stream == capture.origin || std::ranges::find(capture.joined, stream) != capture.joined.end()) return 0;
  order(capture.origin, stream);
  capture.joined.push_back(stream);
  return 0;
}

int NcclStreams::end(OpenCapture& capture) {
  if (!capture.open) return 0;
  for (cudaStream_t joined : capture.joined) order(joined, capture.origin);
  void* graph = nullptr;
  void* instance = nullptr;
  int status = cudaStreamEndCapture(capture.origin, &graph);
  if (status == 0) status = cudaGraphInstantiateWithFlags(&instance, graph, 0);
  const std::lock_guard lock(mutex_);
  if (status == 0) graphs_[capture.graph] = instance;
  capture = {};
  return status;
}

int NcclStreams::launch(const std::string& graph, cudaStream_t stream) {
  void* instance = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = graphs_.find(graph); found != graphs_.end()) instance = found->second;
  }
  return instance == nullptr ? kNoSuchGraph : cudaGraphLaunch(instance, stream);
}

}  // namespace lockstep::testing
