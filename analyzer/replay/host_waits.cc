// See the header.
#include "replay/host_waits.h"

#include <unordered_set>

namespace lockstep {

std::vector<bool> completed_by_host_waits(std::span<const Operation> operations) {
  std::vector<bool> completed(operations.size(), false);
  bool all = false;
  std::unordered_set<StringIndex> streams;
  std::unordered_set<StringIndex> events;  // waited for; where they were recorded is still to come, backwards
  for (std::size_t i = operations.size(); i-- > 0;) {
    const Operation& operation = operations[i];
    const bool returned = operation.state == OpState::kCompleted;
    switch (operation.kind) {
      case OpKind::kDeviceSync:
        all = all || returned;
        break;
      case OpKind::kStreamSync:
        if (returned) streams.insert(operation.stream);
        break;
      case OpKind::kEventSync:
        if (returned) events.insert(operation.handle);
        break;
      case OpKind::kEventRecord:
        if (events.erase(operation.handle) != 0) streams.insert(operation.stream);
        break;
      default:
        completed[i] = all || (!streams.empty() && streams.contains(operation.stream));
        break;
    }
  }
  return completed;
}

void StreamHeads::last_of(StringIndex stream, std::vector<LaunchIndex>& out) const {
  for (auto at = last_.lower_bound({stream, 0}); at != last_.end() && at->first.first == stream; ++at) {
    out.push_back(at->second);
  }
}

void StreamHeads::last_of_all(std::vector<LaunchIndex>& out) const {
  for (const auto& [stream, launch] : last_) out.push_back(launch);
}

std::span<const LaunchIndex> StreamHeads::event(StringIndex event) const {
  const auto at = events_.find(event);
  return at == events_.end() ? std::span<const LaunchIndex>{} : std::span(at->second);
}

}  // namespace lockstep
