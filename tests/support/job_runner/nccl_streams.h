// The streams, events and graphs that the lines of a Job name, on one device. job_runner and standin_truth only.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "nccl_api.h"

namespace lockstep::testing {

/// Work of one host thread that is being captured.
struct OpenCapture {
  bool open = false;
  std::string graph{};
  nccl::cudaStream_t origin = nullptr;
  std::vector<nccl::cudaStream_t> joined{};  ///< other streams that are captured with it
};

/// For all host threads of a rank. A name that is new gets a new stream or event.
class NcclStreams {
 public:
  nccl::cudaStream_t stream(const std::string& name);
  nccl::cudaEvent_t event(const std::string& name);
  /// What is issued to `behind` from now on runs behind what `first` has.
  void order(nccl::cudaStream_t first, nccl::cudaStream_t behind);

  /// Calls on `stream` go into the graph from here on. A status of CUDA, 0 = done.
  int capture(OpenCapture& capture, const std::string& graph, nccl::cudaStream_t stream);
  int end(OpenCapture& capture);
  int launch(const std::string& graph, nccl::cudaStream_t stream);

 private:
  std::mutex mutex_{};
  std::map<std::string, nccl::cudaStream_t> streams_{};
  std::map<std::string, nccl::cudaEvent_t> events_{};
  std::map<std::string, void*> graphs_{};  ///< instantiated
};

}  // namespace lockstep::testing
