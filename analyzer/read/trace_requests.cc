// See the header.
#include "read/trace_requests.h"

#include <fmt/format.h>

namespace lockstep {

StringIndex TraceRequests::open(std::uint64_t request, std::uint32_t operation) {
  close(request);
  StringIndex handle{};
  if (free_.empty()) {
    handle = builder_.intern(fmt::format("r{}", ++made_));
  } else {
    handle = free_.back();
    free_.pop_back();
  }
  open_.emplace(request, Open{operation, handle});
  return handle;
}

std::optional<TraceRequests::Open> TraceRequests::find(std::uint64_t request) const {
  const auto at = open_.find(request);
  return at == open_.end() ? std::nullopt : std::optional(at->second);
}

void TraceRequests::close(std::uint64_t request) {
  const auto at = open_.find(request);
  if (at == open_.end()) return;
  free_.push_back(at->second.handle);
  open_.erase(at);
}

void TraceRequests::forget_all() {
  open_.clear();
  free_.clear();
  made_ = 0;
}

}  // namespace lockstep
