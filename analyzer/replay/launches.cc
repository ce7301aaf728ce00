// See the header.
#include "replay/launches.h"

#include <algorithm>

namespace lockstep {

void Launches::clear(const ProgramTraits& traits) {
  launches_.clear();
  completions_.clear();
  index_all_ = traits.waits_for_all;
  index_peers_ = traits.waits_by_peer;
  index_streams_ = traits.waits_by_stream;
  all_.clear();
  by_handle_.clear();
  by_stream_.clear();
  by_peer_.clear();
}

LaunchIndex Launches::add(std::span<const Completion> completions, LaunchQueue* queue, bool on_actor) {
  const auto launch = static_cast<LaunchIndex>(launches_.size());
  launches_.push_back({.first = static_cast<std::uint32_t>(completions_.size()),
                       .count = static_cast<std::uint32_t>(completions.size()),
                       .queue = queue,
                       .on_actor = on_actor});
  completions_.insert(completions_.end(), completions.begin(), completions.end());
  if (queue != nullptr && on_actor) ++queue->on_actor;
  if (queue != nullptr && !on_actor) queue->started_by_host.push_back(launch);
  return launch;
}

void Launches::index(LaunchIndex launch, const Operation& operation) {
  if (operation.handle != StringIndex{}) by_handle_[operation.handle].push_back(launch);
  if (index_streams_ && operation.stream != StringIndex{}) by_stream_[operation.stream].push_back(launch);
  if (index_peers_ && is_point_to_point(operation.kind)) by_peer_[operation.peer].push_back(launch);
  if (index_all_) all_.push_back(launch);
}

void Launches::take(const Operation& wait, std::vector<Completion>& out) {
  const auto take_by = [&](auto& lists, auto key) {
    if (const auto at = lists.find(key); at != lists.end()) take_list(at->second, out);
  };
  if (wait.handle != StringIndex{}) {
    take_by(by_handle_, wait.handle);
  } else if (wait.stream != StringIndex{}) {
    take_by(by_stream_, wait.stream);
  } else if (wait.peer >= 0) {
    take_by(by_peer_, wait.peer);
  } else {
    take_list(all_, out);
  }
}

void Launches::take_list(List& list, std::vector<Completion>& out) {
  for (const LaunchIndex launch : list) take(launch, out);
  list.clear();
}

void Launches::take(LaunchIndex index, std::vector<Completion>& out) {
  Launch& launch = launches_[index];
  if (launch.waited) return;
  launch.waited = true;
  const auto own = completions(index);
  out.insert(out.end(), own.begin(), own.end());
  if (launch.queue == nullptr) return;
  if (launch.on_actor) {
    --launch.queue->on_actor;
  } else {
    std::erase(launch.queue->started_by_host, index);
  }
}

void Launches::hand_to_actor(LaunchIndex index) {
  launches_[index].on_actor = true;
  ++launches_[index].queue->on_actor;
}

}  // namespace lockstep
