// See the header.
#include "read/trace_completions.h"

namespace lockstep {

void TraceCompletions::add(const trace::CallRecord& call, const CallExtensions& extensions, Operation operation) {
  if (operation.kind == OpKind::kProbe || operation.kind == OpKind::kIprobe) {
    add_probe(call, operation);
    return;
  }
  const bool returned = operation.state == OpState::kCompleted;
  std::vector<std::uint64_t> asked(extensions.requests.begin(), extensions.requests.end());
  if (asked.empty() && call.detail != 0) asked.push_back(call.detail);
  if (operation.kind == OpKind::kWait || (operation.kind == OpKind::kWaitAny && asked.size() == 1)) {
    operation.kind = OpKind::kWait;
    add_waits(call, asked, operation);
    return;
  }
  operations().push_back(operation);
  if (!returned || (call.flags & trace::kCallSucceeded) == 0) return;
  if (asked.size() == 1) {
    complete(asked.front());
  } else if (call.seq < asked.size()) {
    complete(asked[call.seq]);
  } else {
    // Which of them completed is not recorded.
    for (const std::uint64_t request : asked) {
      if (const auto open = requests_.find(request)) operations()[open->operation].state = OpState::kUnknown;
    }
  }
}

void TraceCompletions::add_probe(const trace::CallRecord& call, Operation operation) {
  const TraceCommView* view = names_.comparable(call.comm);
  if (view == nullptr || call.peer == trace::kProcNull) {
    operations().push_back(marker_of(operation, op_name(operation.kind), intake_));
    return;
  }
  operation.comm = view->index;
  operation.peer = call.peer == trace::kAnySource ? kAnyPeer : view->rank_of(call.peer);
  operation.tag = call.aux == trace::kAnyTagWord ? kAnyTag : call.aux;
  // A probe that returned decides nothing: the receive after it is in the record.
  if (operation.kind == OpKind::kProbe && operation.state == OpState::kCompleted) operation.kind = OpKind::kIprobe;
  operations().push_back(operation);
}

/// One wait for each request: a wait without a handle would wait for all that are open.
void TraceCompletions::add_waits(const trace::CallRecord& call, const std::vector<std::uint64_t>& asked, Operation operation) {
  if (asked.size() == 1 && joins_its_call(call, asked.front(), operation)) return;
  bool any = false;
  bool unknown = (call.flags & trace::kCallTruncated) != 0;
  const bool failed = call.result != 0 && operation.state == OpState::kCompleted;
  if (failed && names_.gloo) operation.state = OpState::kEntered;
  for (const std::uint64_t request : asked) {
    const auto open = requests_.find(request);
    if (!open) {
      unknown = unknown || request != 0;
      continue;
    }
    any = true;
    operation.handle = open->handle;
    operations().push_back(operation);
    if (operation.state == OpState::kCompleted) complete(request);
    else if (failed) left_by_error_.push_back(operations().size() - 1);
  }
  if (operation.state != OpState::kCompleted && unknown) operations().push_back(opaque_call(operation, "wait for a request that the record does not hold", intake_));
  else if (!any) operations().push_back(marker_of(operation, "wait for nothing that is open", intake_));
}

/// torch's own functions issue a call and wait for it in one line: that is a blocking call.
bool TraceCompletions::joins_its_call(const trace::CallRecord& call, std::uint64_t request, const Operation& wait) {
  const auto open = requests_.find(request);
  if (!open || open->operation + 1 != operations().size() || torch_call_ != operations().size()) return false;
  Operation& operation = operations().back();
  if (operation.site != wait.site || operation.state != OpState::kEnqueued) return false;
  operation.flags = static_cast<std::uint16_t>(operation.flags & ~kOpNonblocking);
  operation.handle = StringIndex{};
  if (operation.kind == OpKind::kIsend) operation.kind = OpKind::kSend;
  if (operation.kind == OpKind::kIrecv) operation.kind = OpKind::kRecv;
  if (wait.state == OpState::kCompleted && call.result == 0) {
    complete(request);
    return true;
  }
  operation.state = OpState::kEntered;
  if (wait.state == OpState::kCompleted) left_by_error_.push_back(operations().size() - 1);
  requests_.close(request);
  return true;
}

void TraceCompletions::settle_errors() {
  std::size_t last_call = 0;
  for (std::size_t i = 0; i < operations().size(); ++i) {
    if (is_collective(operations()[i].kind) || is_point_to_point(operations()[i].kind)) last_call = i;
  }
  for (const std::size_t i : left_by_error_) {
    Operation& operation = operations()[i];
    if (i >= last_call) continue;
    if (operation.kind == OpKind::kWait) {
      operation.kind = OpKind::kCompute;
      operation.handle = StringIndex{};
      continue;
    }
    operation.flags |= kOpNonblocking;
    operation.state = OpState::kEnqueued;
    if (operation.kind == OpKind::kSend) operation.kind = OpKind::kIsend;
    if (operation.kind == OpKind::kRecv) operation.kind = OpKind::kIrecv;
  }
}

void TraceCompletions::complete(std::uint64_t request) {
  const auto open = requests_.find(request);
  if (!open) return;
  operations()[open->operation].state = OpState::kCompleted;
  requests_.close(request);
}

void TraceCompletions::forget() {
  requests_.forget_all();
  left_by_error_.clear();
  torch_call_ = 0;
}

}  // namespace lockstep
