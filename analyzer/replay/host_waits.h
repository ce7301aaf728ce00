// What the host's own waits (streams, events, the device) say about the calls issued before, and how replay finds the calls
// that such a wait is for. Belongs to the compiler of scripts.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/operation.h"
#include "replay/launches.h"

namespace lockstep {

/// completed[i]: a wait of the host that is known to have returned (OpState::kCompleted) stands behind operation i and was for
/// it. Streams are queues: what completes one call completes those before it.
std::vector<bool> completed_by_host_waits(std::span<const Operation> operations);

/// The last launch of every stream, and what stood last on a stream when an event was recorded on it. One program at a time.
class StreamHeads {
 public:
  void clear() {
    last_.clear();
    events_.clear();
  }
  /// `queue` = key of the queue that the launch stands in: streams without a name may have several.
  void issued(StringIndex stream, std::uint64_t queue, LaunchIndex launch) { last_[{stream, queue}] = launch; }

  /// What is last on the stream, or on all of them. Appends to `out`.
  void last_of(StringIndex stream, std::vector<LaunchIndex>& out) const;
  void last_of_all(std::vector<LaunchIndex>& out) const;
  void record_event(StringIndex event, std::vector<LaunchIndex> launches) { events_[event] = std::move(launches); }
  /// Empty for an event that was never recorded: waiting for it is no wait (CUDA).
  std::span<const LaunchIndex> event(StringIndex event) const;

 private:
  std::map<std::pair<StringIndex, std::uint64_t>, LaunchIndex> last_;
  std::unordered_map<StringIndex, std::vector<LaunchIndex>> events_;
};

}  // namespace lockstep
