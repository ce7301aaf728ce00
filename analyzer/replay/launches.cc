// See the header.
#include "replay/launches.h"

#include <algorithm>

namespace lockstep {

void Launches::clear(const ProgramTraits& traits) {
  ++number_;  // empties all lists
  launches_.clear();
  completions_.clear();
  entries_.clear();
  index_all_ = traits.waits_for_all;
  index_peers_ = traits.waits_by_peer;
  index_streams_ = traits.waits_by_stream;
  by_peer_.clear();
}

LaunchIndex Launches::add(std::span<const Completion> completions, LaunchQueue* queue, bool on_actor) {
  const auto launch = static_cast<LaunchIndex>(launches_.size());
  launches_.push_back({.first = static_cast<std::uint32_t>(completions_.size()),
                       .count = static_cast<std::uint32_t>(completions.size()),
                       .queue = queue,
                       .on_actor = on_actor});
  for (const Completion& completion : completions) completions_.push_back(completion);
  if (queue != nullptr && on_actor) ++queue->on_actor;
  if (queue != nullptr && !on_actor) queue->started_by_host.push_back(launch);
  return launch;
}

Launches::List& Launches::at(std::vector<List>& lists, StringIndex key) {
  if (to_size(key) >= lists.size()) lists.resize(to_size(key) + 1);
  return lists[to_size(key)];
}

void Launches::append(List& list, LaunchIndex launch) {
  if (list.program != number_) list = {.program = number_};
  if (list.last != kNone && entries_[list.last].launch == launch) return;  // parts of one batch
  const auto entry = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back({.launch = launch});
  (list.last == kNone ? list.first : entries_[list.last].next) = entry;
  list.last = entry;
}

void Launches::index(LaunchIndex launch, const Operation& operation) {
  if (operation.handle != StringIndex{}) append(at(by_handle_, operation.handle), launch);
  if (index_streams_ && operation.stream != StringIndex{}) append(at(by_stream_, operation.stream), launch);
  if (index_peers_ && is_point_to_point(operation.kind)) append(by_peer_[operation.peer], launch);
  if (index_all_) append(all_, launch);
}

void Launches::take(const Operation& wait, std::vector<Completion>& out) {
  const auto take_by = [&](std::vector<List>& lists, StringIndex key) {
    if (to_size(key) < lists.size()) take_list(lists[to_size(key)], out);
  };
  if (wait.handle != StringIndex{}) {
    take_by(by_handle_, wait.handle);
  } else if (wait.stream != StringIndex{}) {
    take_by(by_stream_, wait.stream);
  } else if (wait.peer >= 0) {
    if (const auto found = by_peer_.find(wait.peer); found != by_peer_.end()) take_list(found->second, out);
  } else {
    take_list(all_, out);
  }
}

void Launches::take_list(List& list, std::vector<Completion>& out) {
  if (list.program != number_) return;
  for (std::uint32_t at = list.first; at != kNone; at = entries_[at].next) take(entries_[at].launch, out);
  list = {.program = number_};
}

void Launches::take(LaunchIndex index, std::vector<Completion>& out) {
  Launch& launch = launches_[index];
  if (launch.waited) return;
  launch.waited = true;
  const auto own = completions(index);
  for (const Completion& completion : own) out.push_back(completion);
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
