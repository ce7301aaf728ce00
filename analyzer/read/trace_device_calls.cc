// See the header.
#include "read/trace_device_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "read/trace_grown.h"

namespace lockstep {
namespace {

constexpr std::uint8_t kInProgress = 7;  ///< ncclInProgress: under way on a communicator that does not block

constexpr bool is_wait_kind(OpKind kind) {
  return kind == OpKind::kStreamSync || kind == OpKind::kDeviceSync || kind == OpKind::kEventSync || kind == OpKind::kEventRecord ||
         kind == OpKind::kStreamWait;
}
constexpr bool is_group_kind(OpKind kind) { return kind == OpKind::kGroupStart || kind == OpKind::kGroupEnd; }
constexpr bool is_signal_kind(OpKind kind) {
  return kind == OpKind::kPutSignal || kind == OpKind::kSignal || kind == OpKind::kWaitSignal;
}

std::string_view result_name(std::uint8_t result) {
  constexpr std::string_view kNames[] = {"success",       "a CUDA error", "a system error", "an internal error", "an invalid argument",
                                         "invalid usage", "a remote error", "in progress",  "a timeout"};
  return result < std::size(kNames) ? kNames[result] : "an unknown result";
}

}  // namespace

TraceDeviceCalls& TraceDeviceCalls::operator=(TraceDeviceCalls&& other) noexcept {
  streams_ = std::move(other.streams_);
  events_ = std::move(other.events_);
  open_launches_ = std::move(other.open_launches_);
  busy_ = std::move(other.busy_);
  without_effect_ = std::move(other.without_effect_);
  return *this;
}

bool TraceDeviceCalls::takes(const trace::CallRecord& call, const CallExtensions& extensions, const TraceCommView* view) {
  const auto kind = static_cast<OpKind>(call.kind);
  return extensions.has_issue || is_group_kind(kind) || is_wait_kind(kind) || is_signal_kind(kind) || kind == OpKind::kGraphLaunch ||
         (view != nullptr && (view->nccl || view->elsewhere));
}

std::uint32_t TraceDeviceCalls::push(const Operation& operation) {
  operations().push_back(operation);
  return static_cast<std::uint32_t>(operations().size() - 1);
}

void TraceDeviceCalls::add_placed(const trace::CallRecord& call, const CallExtensions& extensions, const TraceCommView* view,
                                  Operation operation) {
  if (is_group_kind(operation.kind)) {
    add_group(call, operation);
    return;
  }
  if (is_wait_kind(operation.kind)) {
    if (call.result == 0) add_wait(call, extensions.issue, operation);
    return;
  }
  if (operation.kind == OpKind::kGraphLaunch) {
    if (call.result == 0) add_graph_launch(extensions.issue, operation);
    return;
  }
  const bool returned = operation.state == OpState::kCompleted;
  const bool refused = returned && call.result != 0 && call.result != kInProgress;
  if (refused) {
    operation.flags |= kOpFailed;
    operation.extra = intake_.shared_extra(fmt::format("NCCL says: {}", result_name(call.result)), {});
  }
  if (refused && op_class(operation.kind) == OpClass::kOpaque) {  // of no effect, so there is nothing to decide
    operation.extra = intake_.shared_extra(fmt::format("NCCL says of it: {}", result_name(call.result)), op_name(operation.kind));
    operation.kind = OpKind::kCompute;
    push(operation);
    return;
  }
  if (view == nullptr || view->index == kNoComm) {
    if (!refused) {
      operation.extra = intake_.shared_extra({}, extensions.name.empty() ? op_name(operation.kind) : std::string_view(extensions.name));
      // A grow that is done, of one that comes and so has no parent: its partners' are on the parent.
      if (operation.kind == OpKind::kGrow && returned && call.comm == 0) operation.kind = OpKind::kCompute;
      else if (op_class(operation.kind) != OpClass::kLocal) {
        if (operation.kind == OpKind::kGrow) operation.extra = grow_extra(extensions);
        operation.kind = OpKind::kOpaque;
      }
      if (view != nullptr && view->shared_by_threads != kNoComm) {
        operation.comm = view->shared_by_threads;
        operation.flags |= kOpThreadUnsafe;
      }
    }
    push(operation);
    return;
  }
  operation.comm = view->index;
  const auto rank_of = [&](std::int32_t comm_rank) {
    const auto index = static_cast<std::size_t>(comm_rank);
    return comm_rank >= 0 && index < view->members.size() ? view->members[index] : kNoPeer;
  };
  if (op_class(operation.kind) == OpClass::kLocal) {
    push(operation);
    return;
  }
  if (op_class(operation.kind) == OpClass::kOpaque && !is_signal_kind(operation.kind)) {
    operation.extra = intake_.shared_extra({}, extensions.name);
    push(operation);
    return;
  }
  if (!extensions.has_issue) {
    if (operation.kind == OpKind::kShrink && extensions.has_creation && !refused &&
        place_shrink(extensions.creation, view->index, view->members, operation)) {
      push(operation);
      return;
    }
    add_creation(call, extensions, view->stated_size, operation);
    return;
  }
  const trace::IssueRecord& issue = extensions.issue;
  operation.flags |= kOpNonblocking;
  if (returned) operation.state = OpState::kEnqueued;
  operation.stream = stream(issue.stream).name;
  operation.launch = issue.launch;
  if (view->compare_arguments) {
    operation.count = Count::of(call.count);
    operation.datatype = names_.datatype(call.datatype);
    if (has_reduction(operation.kind)) operation.redop = names_.redop(call.redop);
  }
  if (is_collective(operation.kind)) {
    if (call.peer >= 0 && has_root(operation.kind)) operation.peer = rank_of(call.peer);
  } else {
    operation.peer = rank_of(call.peer);
    if (operation.peer == kNoPeer && is_point_to_point(operation.kind) && !refused) {
      operation.kind = OpKind::kOpaque;
      operation.extra = intake_.shared_extra({}, op_name(static_cast<OpKind>(call.kind)));
    }
  }
  if (refused) {
    push(operation);
    return;
  }
  if (issue.capture != 0) {
    operation.flags |= kOpCaptured;
    operation.handle = graph_name(issue.capture);
    operation.state = OpState::kUnknown;
  }
  const std::uint32_t index = push(operation);
  if (is_point_to_point(operation.kind)) result_.messages.push_back({index, call.seq});
  if (issue.capture == 0) issue_to(issue.stream, index);
  if (issue.launch != 0) open_launches_[issue.launch].push_back(index);
}

bool TraceDeviceCalls::place_shrink(const trace::CreationRecord& creation, CommIndex parent, std::span<const std::int32_t> members,
                                    Operation& operation) {
  if (result_.program.head_missing) return false;  // the how-manieth it is is lost
  const std::uint32_t number = shrinks_[parent]++;
  const auto left = creation.members > 0
                        ? shrink_survivors(members.size(), static_cast<std::size_t>(creation.members), creation.group_hash)
                        : std::nullopt;
  if (!left) return false;
  std::vector<std::int32_t> survivors;
  for (const std::size_t index : *left) survivors.push_back(members[index]);
  // Lists in another order mean other calls: only equal ones meet.
  const Communicator& old = intake_.builder().communicator(parent);
  const std::string id = fmt::format("{}/shrink{}:{:016x}", old.id, number, creation.group_hash);
  const std::string name = fmt::format("{} without {}", old.name, members.size() - survivors.size());
  operation.comm = intake_.builder().communicator(id, name, survivors);
  if (creation.blocking == 2) {
    operation.flags |= kOpNonblocking;
    if (operation.state == OpState::kCompleted) operation.state = OpState::kEnqueued;
  }
  return true;
}

void TraceDeviceCalls::add_creation(const trace::CallRecord& call, const CallExtensions& extensions, std::int32_t stated_size,
                                    Operation operation) {
  if (call.seq == trace::kNoPosition && is_collective(operation.kind)) operation.comm = kNoComm;  // made by a part of it
  if (call.result == kInProgress || (extensions.has_creation && extensions.creation.blocking == 2)) {
    operation.flags |= kOpNonblocking;
    if (operation.state == OpState::kCompleted) operation.state = OpState::kEnqueued;
  }
  if (extensions.has_creation && operation.kind == OpKind::kSplit) {
    const trace::CreationRecord& creation = extensions.creation;
    const std::string color = creation.color == trace::kNoColor ? "undefined" : std::to_string(creation.color);
    operation.extra = intake_.builder().extra({.color = color, .key = std::to_string(creation.key)});
  }
  // Which member of it the rank says it is: no two may say the same.
  if (extensions.has_creation && operation.kind == OpKind::kInit && operation.extra == 0) {
    OperationExtra extra{.key = std::to_string(extensions.creation.key)};
    if (stated_size > 0) extra.counts = {static_cast<std::uint64_t>(stated_size)};
    operation.extra = intake_.builder().extra(std::move(extra));
  }
  if (operation.kind == OpKind::kGrow && operation.extra == 0) operation.extra = grow_extra(extensions);
  if (operation.comm == kNoComm && operation.state == OpState::kEntered) operation.kind = OpKind::kOpaque;
  // Inside a group the library only takes note of it.
  if (open_group_ != 0) {
    operation.launch = open_group_;
    if (operation.state == OpState::kCompleted) operation.state = OpState::kEnqueued;
    open_launches_[open_group_].push_back(static_cast<std::uint32_t>(operations().size()));
  }
  push(operation);
}

std::uint32_t TraceDeviceCalls::grow_extra(const CallExtensions& extensions) {
  OperationExtra extra{.native_name = "ncclCommGrow"};
  if (extensions.has_creation && extensions.creation.members > 0) extra.counts = {static_cast<std::uint64_t>(extensions.creation.members)};
  return intake_.builder().extra(std::move(extra));
}

void TraceDeviceCalls::add_group(const trace::CallRecord& call, Operation operation) {
  const bool returned = operation.state == OpState::kCompleted;
  const bool outermost = call.count <= 1;
  if (operation.kind == OpKind::kGroupStart) {
    if (call.result == 0 && returned && outermost) open_group_ = call.aux;
    push(operation);
    return;
  }
  push(operation);
  if (!outermost || call.aux == 0) return;
  open_group_ = 0;
  const auto open = open_launches_.find(call.aux);
  if (open == open_launches_.end()) return;
  if (call.detail == 1) {
    undo_launch(call.aux, "simulated");
  } else if (returned && call.result != 0 && call.result != kInProgress) {
    refuse_launch(call.aux, fmt::format("NCCL says of its group: {}", result_name(call.result)));
  } else if (returned && call.result == 0) {
    for (const std::uint32_t i : open->second) {
      Operation& made = operations()[i];
      if (op_class(made.kind) == OpClass::kCreation && !made.nonblocking()) made.state = OpState::kCompleted;
    }
  }
  open_launches_.erase(call.aux);
}

void TraceDeviceCalls::refuse_launch(std::uint32_t launch, const std::string& why) {
  for (const std::uint32_t i : open_launches_[launch]) {
    operations()[i].flags |= kOpFailed;
    operations()[i].extra = intake_.shared_extra(why, {});
    without_effect_.push_back(i);
  }
}

void TraceDeviceCalls::undo_launch(std::uint32_t launch, std::string_view why) {
  for (const std::uint32_t i : open_launches_[launch]) {
    Operation& operation = operations()[i];
    Operation marker{.site = operation.site, .line = operation.line, .kind = OpKind::kCompute};
    marker.extra = intake_.shared_extra(fmt::format("{}, {}", op_name(operation.kind), why), {});
    marker.state = operation.state;
    operation = marker;
    without_effect_.push_back(i);
  }
}

void TraceDeviceCalls::finish() {
  if (!result_.program.tail_missing) {
    std::vector<std::uint32_t> open;
    for (const auto& [launch, calls] : open_launches_) open.push_back(launch);
    for (const std::uint32_t launch : open) undo_launch(launch, "not issued: its group was not closed");
  }
  open_launches_.clear();
  if (without_effect_.empty()) return;
  std::ranges::sort(without_effect_);
  std::erase_if(result_.messages,
                [&](const MessagePosition& message) { return std::ranges::binary_search(without_effect_, message.operation); });
}

void TraceDeviceCalls::add_wait(const trace::CallRecord& call, const trace::IssueRecord& issue, Operation operation) {
  if (issue.capture != 0) return;  // an edge inside a graph
  const bool returned = operation.state == OpState::kCompleted;
  switch (operation.kind) {
    case OpKind::kStreamSync: {
      const auto at = streams_.find(issue.stream);
      if (at == streams_.end()) return;  // of another rank of this process
      operation.stream = at->second.name;
      if (returned) complete(issue.stream, at->second.issued.size());
      break;
    }
    case OpKind::kDeviceSync:
      if (names_.device >= 0 && issue.device >= 0 && names_.device != issue.device) return;
      if (returned) {
        for (const std::uint64_t handle : std::exchange(busy_, {})) {
          Stream& one = stream(handle);
          one.is_busy = false;
          complete(handle, one.issued.size());
        }
      }
      break;
    case OpKind::kEventRecord: {
      const auto at = streams_.find(issue.stream);
      if (at == streams_.end()) return;
      operation.stream = at->second.name;
      operation.handle = event_name(call.detail);
      Event& event = events_[call.detail];
      event.stream = issue.stream;
      event.upto = at->second.issued.size();
      break;
    }
    case OpKind::kEventSync:
    case OpKind::kStreamWait: {
      const auto event = events_.find(call.detail);
      if (event == events_.end()) return;
      operation.handle = event->second.name;
      if (operation.kind == OpKind::kStreamWait) {
        Stream& to = stream(issue.stream);
        operation.stream = to.name;
        to.issued.push_back({.operation = kNone, .stream = event->second.stream, .upto = event->second.upto});
        if (!std::exchange(to.is_busy, true)) busy_.push_back(issue.stream);
      } else if (returned) {
        complete(event->second.stream, event->second.upto);
      }
      break;
    }
    default:
      break;
  }
  push(operation);
}

void TraceDeviceCalls::add_graph_launch(const trace::IssueRecord& issue, Operation operation) {
  const auto graph = graphs_.find(issue.capture);
  if (graph == graphs_.end()) return;  // nothing of this rank was captured into it
  operation.handle = graph->second;
  operation.stream = stream(issue.stream).name;
  operation.flags |= kOpNonblocking;
  if (operation.state == OpState::kCompleted) operation.state = OpState::kEnqueued;
  issue_to(issue.stream, push(operation));
}

void TraceDeviceCalls::issue_to(std::uint64_t handle, std::uint32_t operation) {
  Stream& to = stream(handle);
  to.issued.push_back({.operation = operation});
  if (!std::exchange(to.is_busy, true)) busy_.push_back(handle);
}

TraceDeviceCalls::Stream& TraceDeviceCalls::stream(std::uint64_t handle) {
  const auto [at, added] = streams_.try_emplace(handle);
  if (added) at->second.name = intake_.builder().intern(handle == 0 ? "default" : fmt::format("s{}", streams_.size()));
  return at->second;
}

StringIndex TraceDeviceCalls::event_name(std::uint64_t handle) {
  const auto [at, added] = events_.try_emplace(handle);
  if (added) at->second.name = intake_.builder().intern(fmt::format("e{}", ++event_names_));
  return at->second.name;
}

StringIndex TraceDeviceCalls::graph_name(std::uint64_t capture) {
  const auto [at, added] = graphs_.try_emplace(capture);
  if (added) at->second = intake_.builder().intern(fmt::format("graph{}", graphs_.size()));
  return at->second;
}

/// The host knows that everything on a stream up to there has run, and with it what those calls waited for.
void TraceDeviceCalls::complete(std::uint64_t first, std::size_t first_upto) {
  std::vector<std::pair<std::uint64_t, std::size_t>> open{{first, first_upto}};
  while (!open.empty()) {
    const auto [handle, upto] = open.back();
    open.pop_back();
    const auto at = streams_.find(handle);
    if (at == streams_.end()) continue;
    Stream& one = at->second;
    for (; one.done < std::min(upto, one.issued.size()); ++one.done) {
      const Issued& issued = one.issued[one.done];
      if (issued.operation == kNone) {
        open.emplace_back(issued.stream, issued.upto);
      } else {
        Operation& operation = operations()[issued.operation];
        if (operation.state == OpState::kEnqueued) operation.state = OpState::kCompleted;
      }
    }
  }
}

}  // namespace lockstep
