// Put, signal, and the wait for signals. The one who puts waits for nobody: its data stands behind the shared memory of the communicator
// until the other waits for the signal, and is in the window when that wait is done.
#include <algorithm>
#include <cstring>

#include "nccl/calls.h"
#include "nccl/group.h"
#include "nccl/reduce.h"
#include "nccl/report.h"
#include "nccl/steps.h"

namespace lockstep::standin {
namespace {

class SignalSteps : public Steps {
 public:
  explicit SignalSteps(const Call& call) : call_(call), comm_(*call.comm) {}

  Progress advance() override {
    const Segment& segment = *comm_.segment;
    Channel& channel = segment.channel(comm_.rank, call_.peer);
    const std::uint64_t at = segment.append({0, call_.window, call_.offset, call_.count}, call_.send);
    if (at == 0) return Progress::kNone;  // no memory left
    if (channel.last_signal != 0) segment.link(channel.last_signal, at);
    else channel.next_signal = at;
    channel.last_signal = at;
    ++channel.signals;
    return Progress::kDone;
  }

  std::string describe() const override { return "rank " + std::to_string(comm_.rank) + " signals rank " + std::to_string(call_.peer); }

 private:
  Call call_;
  ncclComm& comm_;
};

class WaitSteps : public Steps {
 public:
  explicit WaitSteps(const Call& call) : call_(call), comm_(*call.comm) {}

  Progress advance() override {
    bool moved = false;
    while (at_ < call_.waits.size()) {
      const nccl::ncclWaitSignalDesc_t& wait = call_.waits[at_];
      Channel& channel = comm_.segment->channel(wait.peer, comm_.rank);
      if (channel.signals < channel.signals_taken + static_cast<std::uint64_t>(wait.opCnt)) return moved ? Progress::kSome : Progress::kNone;
      for (int i = 0; i < wait.opCnt; ++i) take(channel);
      ++at_;
      moved = true;
    }
    return Progress::kDone;
  }

  std::string describe() const override {
    const nccl::ncclWaitSignalDesc_t& wait = call_.waits[at_];
    const Channel& channel = comm_.segment->channel(wait.peer, comm_.rank);
    return "rank " + std::to_string(comm_.rank) + " waits for " + std::to_string(wait.opCnt) + " signals of rank " + std::to_string(wait.peer) +
           ", of which " + std::to_string(channel.signals - channel.signals_taken) + " have come, on " + communicator_text(comm_);
  }

 private:
  void take(Channel& channel) {
    const Put put = comm_.segment->put_at(channel.next_signal);
    const bool fits = put.window < comm_.windows.size() && comm_.windows[put.window].bytes >= put.bytes &&
                      comm_.windows[put.window].bytes - put.bytes >= put.offset;
    if (put.bytes > 0 && fits) comm_.segment->payload(channel.next_signal, comm_.windows[put.window].memory + put.offset, put.bytes);
    channel.next_signal = put.next;
    if (put.next == 0) channel.last_signal = 0;
    ++channel.signals_taken;
  }

  Call call_;
  ncclComm& comm_;
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<Steps> signal_steps(const Call& call) {
  if (call.kind == OpKind::kWaitSignal) return std::make_unique<WaitSteps>(call);
  return std::make_unique<SignalSteps>(call);
}

namespace offered {
namespace {

ncclResult_t check(ncclComm_t comm, int peer, int index, int context, unsigned flags) {
  if (const ncclResult_t result = check_communicator(comm); result != ncclSuccess) return result;
  if (peer < 0 || peer >= comm->ranks) return fail(ncclInvalidArgument, "no such peer", comm);
  if (index != 0 || context != 0 || flags != 0) return fail(ncclInvalidArgument, "signals, contexts and flags other than 0 are none yet", comm);
  return ncclSuccess;
}

Call signal_call(OpKind kind, int peer, ncclComm_t comm, cudaStream_t stream) {
  Call call;
  call.kind = kind;
  call.peer = peer;
  call.comm = comm;
  call.stream = stream;
  return call;
}

}  // namespace

ncclResult_t PutSignal(const void* data, size_t count, ncclDataType_t type, int peer, ncclWindow_t window, size_t offset, int index,
                       int context, unsigned flags, ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t result = check(comm, peer, index, context, flags); result != ncclSuccess) return refuse(result);
  const auto* memory = reinterpret_cast<const std::byte*>(window);  // NOLINT: a window is the memory it was made of
  const auto found = std::ranges::find(comm->windows, memory, &ncclComm::Window::memory);
  if (memory == nullptr || found == comm->windows.end()) return refuse(fail(ncclInvalidArgument, "no such window", comm));
  const std::size_t size = datatype_bytes(type);
  if (size == 0 || (data == nullptr && count > 0)) return refuse(fail(ncclInvalidArgument, "no data, or no such datatype", comm));
  Call call = signal_call(OpKind::kPutSignal, peer, comm, stream);
  call.send = data;
  call.count = count * size;
  call.window = static_cast<std::uint64_t>(found - comm->windows.begin());
  call.offset = offset;
  return issue_call(std::move(call));
}

ncclResult_t Signal(int peer, int index, int context, unsigned flags, ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t result = check(comm, peer, index, context, flags); result != ncclSuccess) return refuse(result);
  return issue_call(signal_call(OpKind::kSignal, peer, comm, stream));
}

ncclResult_t WaitSignal(int count, ncclWaitSignalDesc_t* descriptors, ncclComm_t comm, cudaStream_t stream) {
  if (count < 1 || descriptors == nullptr) return refuse(fail(ncclInvalidArgument, "nothing to wait for", comm));
  Call call = signal_call(OpKind::kWaitSignal, -1, comm, stream);
  for (int i = 0; i < count; ++i) {
    const ncclWaitSignalDesc_t& wait = descriptors[i];
    if (const ncclResult_t result = check(comm, wait.peer, wait.sigIdx, wait.ctx, 0); result != ncclSuccess) return refuse(result);
    if (wait.opCnt < 0) return refuse(fail(ncclInvalidArgument, "no such number of signals", comm));
    call.waits.push_back(wait);
  }
  return issue_call(std::move(call));
}

}  // namespace offered
}  // namespace lockstep::standin
