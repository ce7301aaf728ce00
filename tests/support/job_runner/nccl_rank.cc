// Turns the operations of a program into calls of NCCL and the CUDA runtime.
#include "nccl_rank.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "made_groups.h"
#include "nccl_api.h"
#include "nccl_data.h"
#include "nccl_streams.h"
#include "progress.h"
#include "sizes.h"

namespace lockstep::testing {
namespace {

using namespace nccl;

constexpr std::uint64_t kCheckedBytes = 64U << 20;
constexpr auto kNoType = static_cast<ncclDataType_t>(99);

int number(std::string_view text, int otherwise) {
  int value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

class NcclRank {
 public:
  NcclRank(const Job& job, std::int32_t rank, UniqueIds ids, const NcclRankOptions& options)
      : job_(job), rank_(rank), ids_(ids), options_(options), comms_(job.communicators().size(), nullptr) {}

  RankOutcome run() {
    cudaSetDevice(options_.device);
    for (std::size_t i = 0; i < comms_.size() && outcome_.error.empty(); ++i)
      if (member(CommIndex{static_cast<std::uint32_t>(i)}, rank_) >= 0 && job_.library_of(CommIndex{static_cast<std::uint32_t>(i)}) != Library::kMpi &&
          !is_made_by_a_line(job_, CommIndex{static_cast<std::uint32_t>(i)}))
        make(CommIndex{static_cast<std::uint32_t>(i)});
    set_phase(RankPhase::kRunning);
    const ProgramIndex index = job_.program_of_rank(rank_);
    if (index != kNoProgram && outcome_.error.empty()) run_program(job_.program(index));
    set_phase(RankPhase::kFinishing);
    if (outcome_.error.empty()) finish();
    return outcome_;
  }

 private:

  int member(CommIndex comm, std::int32_t job_rank) const {
    const auto& members = job_.communicator(comm).members;
    const auto found = std::ranges::find(members, job_rank);
    return found == members.end() ? -1 : static_cast<int>(found - members.begin());
  }

  void set_phase(RankPhase phase) {
    if (options_.phase != nullptr) *options_.phase = static_cast<std::uint32_t>(phase);
  }

  void fail(const Operation& operation, std::string_view what) {
    const std::lock_guard lock(mutex_);
    if (outcome_.error.empty())
      outcome_.error = "line " + std::to_string(operation.line) + ": " + std::string(op_name(operation.kind)) + ": " + std::string(what);
  }

  void check(const Operation& operation, ncclResult_t result) {
    if (is_refused(operation)) {
      if (result == ncclSuccess) fail(operation, "is to be refused, and was not");
    } else if (result != ncclSuccess && result != ncclInProgress)
      fail(operation, std::string(ncclGetErrorString(result)) + " (" + ncclGetLastError(nullptr) + ")");
  }

  void check_cuda(const Operation& operation, int status) {
    if (status != 0) fail(operation, "CUDA says " + std::to_string(status));
  }

  /// A call that the Job says the library refused: with an argument that no library takes.
  static bool is_refused(const Operation& operation) { return (operation.flags & kOpFailed) != 0; }

  void make(CommIndex comm) { join(comm, ids_[to_size(comm)], member(comm, rank_)); }
  int size_of(CommIndex comm) const { return static_cast<int>(job_.communicator(comm).members.size()); }

  void join(CommIndex comm, const ncclUniqueId& id, int rank) { join(comm, id, rank, size_of(comm)); }
  void join(CommIndex comm, const ncclUniqueId& id, int rank, int ranks) {
    const ncclResult_t result = ncclCommInitRank(&comms_[to_size(comm)], ranks, id, rank);
    if (result != ncclSuccess) outcome_.error = std::string("ncclCommInitRank: ") + ncclGetLastError(nullptr);
  }

  /// The first of those that the line can make and that this rank does not have yet; kNoComm: no group of the Job.
  CommIndex made_by(const Operation& operation) {
    for (const CommIndex comm : can_make(job_, job_.program(job_.program_of_rank(rank_)), operation))
      if (comms_[to_size(comm)] == nullptr) return comm;
    return kNoComm;
  }

  /// torch's: the members meet under the number of the call, over the store, of which NCCL knows nothing.
  void new_group(const Operation& operation) {
    const std::size_t id = comms_.size() + new_groups_++;
    if (id >= ids_.size()) return unsupported(operation);
    if (const CommIndex comm = made_by(operation); comm != kNoComm) join(comm, ids_[id], member(comm, rank_));
  }

  /// The calls of each host thread that the program names, side by side; those without a name are the main thread's.
  void run_program(const Program& program) {
    std::map<std::string, std::vector<std::uint32_t>> by_thread;
    for (std::uint32_t i = 0; i < program.operations.size(); ++i) by_thread[job_.extra(program.operations[i]).thread].push_back(i);
    std::vector<std::thread> threads;
    for (const auto& [name, operations] : by_thread)
      if (by_thread.size() > 1 && &operations != &by_thread.begin()->second)
        threads.emplace_back([&, list = &operations] {
          cudaSetDevice(options_.device);
          run_operations(program, *list);
        });
    if (!by_thread.empty()) run_operations(program, by_thread.begin()->second);
    for (std::thread& thread : threads) thread.join();
    if (options_.operation != nullptr) *options_.operation = static_cast<std::uint32_t>(program.operations.size());
  }

  void run_operations(const Program& program, const std::vector<std::uint32_t>& operations) {
    std::uint32_t launch = 0;
    OpenCapture capture;
    std::vector<const Operation*> launched;
    const auto close = [&](const Operation& last) {
      if (launch != 0) {
        check(last, ncclGroupEnd());
        for (const Operation* operation : launched) after_issue(*operation);
      }
      launched.clear();
      launch = 0;
    };
    const Operation* previous = nullptr;
    for (const std::uint32_t i : operations) {
      const Operation& operation = program.operations[i];
      if ((operation.flags & kOpReplayed) != 0) continue;  // the graph makes it
      if (operation.launch != launch && previous != nullptr) close(*previous);
      const bool captured = (operation.flags & kOpCaptured) != 0;
      if (capture.open && (!captured || capture.graph != job_.text(operation.handle)))
        check_cuda(operation, streams_.end(capture));
      if (captured) check_cuda(operation, streams_.capture(capture, std::string(job_.text(operation.handle)), stream(operation)));
      if (options_.operation != nullptr) *options_.operation = i;
      if (options_.other_library && options_.other_library(operation)) {
        previous = &operation;
        continue;
      }
      if (operation.launch != 0 && launch == 0) check(operation, ncclGroupStart());
      launch = operation.launch;
      before_issue(operation);
      issue(operation);
      if (launch != 0) launched.push_back(&operation);
      else after_issue(operation);
      previous = &operation;
      if (failed()) return;
    }
    if (previous == nullptr) return;
    close(*previous);
    check_cuda(*previous, streams_.end(capture));
  }

  bool failed() {
    const std::lock_guard lock(mutex_);
    return !outcome_.error.empty();
  }

  /// torch gives a call a stream of its communicator unless one is named, and orders it by the current stream.
  bool is_ordered_by_torch(const Operation& operation) const {
    const OpClass c = op_class(operation.kind);
    return job_.library() == Library::kTorch && to_size(operation.stream) == 0 && (operation.flags & kOpCaptured) == 0 &&
           (c == OpClass::kCollective || c == OpClass::kPointToPoint);
  }

  cudaStream_t stream(const Operation& operation) {
    if (is_ordered_by_torch(operation)) return streams_.stream("communicator " + std::to_string(to_size(operation.comm)));
    return streams_.stream(std::string(job_.text(operation.stream)));
  }

  cudaStream_t current_stream(const Operation& operation) { return streams_.stream(job_.extra(operation).thread); }

  CallBuffers& buffers(const Operation& operation, int peer, OpKind kind) {
    const DataCall call{kind, job_.datatype(operation.datatype), job_.redop(operation.redop), run_count(operation.count),
                        member(operation.comm, rank_), static_cast<int>(job_.communicator(operation.comm).members.size()), peer};
    const std::lock_guard lock(mutex_);
    bytes_ += call.count * 8 * static_cast<std::uint64_t>(call.ranks);
    issued_.push_back(std::make_unique<CallBuffers>(call, options_.check_data && bytes_ < kCheckedBytes));
    return *issued_.back();
  }

  static bool is_signal(OpKind kind) { return kind == OpKind::kPutSignal || kind == OpKind::kSignal || kind == OpKind::kWaitSignal; }

  /// A wait names whose signals it takes, unless there is one other only. What is put begins the window of the other, which a line registers.
  void signal(const Operation& operation) {
    if (operation.comm == kNoComm || member(operation.comm, rank_) < 0) return fail(operation, "this rank is no member");
    ncclComm_t comm = comms_[to_size(operation.comm)];
    if (comm == nullptr) return fail(operation, "the communicator has not been made");
    const auto& members = job_.communicator(operation.comm).members;
    std::int32_t partner = operation.peer;
    if (partner < 0 && members.size() == 2) partner = members[members[0] == rank_ ? 1 : 0];
    const int peer = is_refused(operation) ? -1 : member(operation.comm, partner);
    if (peer < 0 && !is_refused(operation)) return fail(operation, "names no peer");
    const std::uint64_t count = run_count(operation.count);
    cudaStream_t queue = stream(operation);
    if (operation.kind == OpKind::kSignal) return check(operation, ncclSignal(peer, 0, 0, 0, comm, queue));
    if (operation.kind == OpKind::kWaitSignal) {
      const auto signals = operation.count.is_none() ? 1 : static_cast<int>(std::min<std::uint64_t>(count, kMostElements));
      ncclWaitSignalDesc_t wait{signals, peer, 0, 0};
      return check(operation, ncclWaitSignal(1, &wait, comm, queue));
    }
    const auto window = windows_.find(operation.comm);
    if (window == windows_.end()) return fail(operation, "no window_register stands before it");
    CallBuffers& data = buffers(operation, peer, OpKind::kSend);
    const auto type = static_cast<ncclDataType_t>(nccl_datatype(job_.datatype(operation.datatype)));
    check(operation, ncclPutSignal(data.send(), count, type, peer, window->second, 0, 0, 0, 0, comm, queue));
  }

  /// A window takes the largest of what is put into those of its communicator.
  void register_window(const Operation& operation, ncclComm_t comm) {
    Operation largest = operation;
    largest.count = Count::of(1);
    for (const Program& program : job_.programs())
      for (const Operation& other : program.operations)
        if (other.kind == OpKind::kPutSignal && other.comm == operation.comm)
          largest.count = Count::of(std::max(largest.count.number(), run_count(other.count)));
    CallBuffers& data = buffers(largest, -1, OpKind::kSend);
    check(operation, ncclCommWindowRegister(comm, data.receive(), largest.count.number() * 8, &windows_[operation.comm], kWindowSymmetric));
  }

  void issue(const Operation& operation) {
    if (is_signal(operation.kind)) return signal(operation);
    if (is_collective(operation.kind) || is_point_to_point(operation.kind)) {
      if (operation.comm == kNoComm || member(operation.comm, rank_) < 0) return fail(operation, "this rank is no member");
      if (operation.kind == OpKind::kInit) return init(operation);
      if (operation.kind == OpKind::kGrow) return grow(operation);
      if (operation.kind == OpKind::kShrink) return shrink(operation);
      if (comms_[to_size(operation.comm)] == nullptr) return fail(operation, "the communicator has not been made");
      return communicate(operation, comms_[to_size(operation.comm)]);
    }
    const std::string handle(job_.text(operation.handle));
    cudaStream_t named = streams_.stream(std::string(job_.text(operation.stream)));
    switch (operation.kind) {
      case OpKind::kCompute:
        usleep(500);
        break;
      case OpKind::kExit:
        break;
      case OpKind::kWait:
        if (handle.empty()) cudaDeviceSynchronize();
        else if (job_.library() == Library::kTorch) cudaStreamWaitEvent(current_stream(operation), streams_.event(handle), 0);
        else cudaEventSynchronize(streams_.event(handle));
        break;
      case OpKind::kEventSync:
        cudaEventSynchronize(streams_.event(handle));
        break;
      case OpKind::kStreamSync:
        cudaStreamSynchronize(named);
        break;
      case OpKind::kDeviceSync:
        cudaDeviceSynchronize();
        break;
      case OpKind::kEventRecord:
        cudaEventRecord(streams_.event(handle), named);
        break;
      case OpKind::kStreamWait:
        cudaStreamWaitEvent(named, streams_.event(handle), 0);
        break;
      case OpKind::kGraphLaunch:
        check_cuda(operation, streams_.launch(handle, named));
        break;
      case OpKind::kDestroy:
      case OpKind::kAbort:
        end(operation);
        break;
      case OpKind::kRevoke:
        if (operation.comm != kNoComm && comms_[to_size(operation.comm)] != nullptr)
          check(operation, ncclCommRevoke(comms_[to_size(operation.comm)], 0));
        break;
      default:
        unsupported(operation);
    }
  }

  void init(const Operation& operation) {
    const int own = member(operation.comm, rank_);
    const std::vector<std::uint64_t>& stated = job_.extra(operation).counts;  // the size, where it is not the group's
    const int ranks = stated.size() == 1 ? static_cast<int>(std::min<std::uint64_t>(stated[0], 1024)) : size_of(operation.comm);
    join(operation.comm, ids_[to_size(operation.comm)], is_refused(operation) ? -1 : number(job_.extra(operation).key, own), ranks);
  }

  /// The line names what it makes; what grows is the largest communicator of this rank whose members come first in it.
  void grow(const Operation& operation) {
    const auto& members = job_.communicator(operation.comm).members;
    ncclComm_t& made = comms_[to_size(operation.comm)];
    if (made != nullptr) return unsupported(operation);
    std::size_t old = comms_.size();
    for (std::size_t i = 0; i < comms_.size(); ++i) {
      const auto& some = job_.communicator(CommIndex{static_cast<std::uint32_t>(i)}).members;
      const bool begins = some.size() < members.size() && std::equal(some.begin(), some.end(), members.begin());
      if (comms_[i] != nullptr && begins && (old == comms_.size() || some.size() > size_of_members(old))) old = i;
    }
    const bool comes = old == comms_.size();
    const int own = member(operation.comm, rank_);
    check(operation, ncclCommGrow(comes ? nullptr : comms_[old], size_of(operation.comm),
                                  comes || own == 0 ? &ids_[to_size(operation.comm)] : nullptr, comes ? own : -1, &made, nullptr));
  }
  std::size_t size_of_members(std::size_t comm) const { return job_.communicators()[comm].members.size(); }

  /// The reader has placed it on those that stay.
  void shrink(const Operation& operation) {
    const CommIndex old = shrunk_from(job_, operation.comm);
    if (old == kNoComm || comms_[to_size(old)] == nullptr) return unsupported(operation);
    std::vector<int> excluded;
    const auto& members = job_.communicator(old).members;
    for (std::size_t i = 0; i < members.size(); ++i)
      if (member(operation.comm, members[i]) < 0) excluded.push_back(static_cast<int>(i));
    ncclComm_t made = nullptr;
    const CommIndex group = made_by(operation);
    ncclComm_t& place = group == kNoComm ? made : comms_[to_size(group)];
    check(operation, ncclCommShrink(comms_[to_size(old)], excluded.data(), static_cast<int>(excluded.size()), &place, nullptr, 0));
  }

  void unsupported(const Operation& operation) {
    fail(operation, "NCCL has no such call");
    outcome_.unsupported = true;
  }

  void end(const Operation& operation) {
    if (operation.comm == kNoComm) return;
    ncclComm_t& comm = comms_[to_size(operation.comm)];
    if (comm != nullptr) check(operation, operation.kind == OpKind::kAbort ? ncclCommAbort(comm) : ncclCommDestroy(comm));
    comm = nullptr;
  }

  void communicate(const Operation& operation, ncclComm_t comm) {
    const int peer = operation.peer < 0 ? (has_root(operation.kind) ? 0 : -1) : member(operation.comm, operation.peer);
    const auto type =
        is_refused(operation) ? kNoType : static_cast<ncclDataType_t>(nccl_datatype(job_.datatype(operation.datatype)));
    const auto op = static_cast<ncclRedOp_t>(nccl_redop(job_.redop(operation.redop)));
    const std::uint64_t count = run_count(operation.count);
    OpKind kind = operation.kind;
    if (kind == OpKind::kBarrier) kind = OpKind::kAllReduce;  // as torch does it
    if (is_send(kind)) kind = OpKind::kSend;
    if (is_receive(kind)) kind = OpKind::kRecv;
    if (op_class(kind) == OpClass::kCreation || op_class(kind) == OpClass::kTeardown) return change(operation, comm);
    cudaStream_t queue = stream(operation);
    if (kind == OpKind::kAllToAllV || kind == OpKind::kAllGatherV) return exchange(operation, comm, type, queue);
    CallBuffers& data = buffers(operation, peer, kind);
    switch (kind) {
      case OpKind::kAllReduce:
        return check(operation, ncclAllReduce(data.send(), data.receive(), count, type, op, comm, queue));
      case OpKind::kReduce:
        return check(operation, ncclReduce(data.send(), data.receive(), count, type, op, peer, comm, queue));
      case OpKind::kBroadcast:
        return check(operation, ncclBroadcast(data.send(), data.receive(), count, type, peer, comm, queue));
      case OpKind::kAllGather:
        return check(operation, ncclAllGather(data.send(), data.receive(), count, type, comm, queue));
      case OpKind::kReduceScatter:
        return check(operation, ncclReduceScatter(data.send(), data.receive(), count, type, op, comm, queue));
      case OpKind::kAllToAll:
        return check(operation, ncclAlltoAll(data.send(), data.receive(), count, type, comm, queue));
      case OpKind::kGather:
        return check(operation, ncclGather(data.send(), data.receive(), count, type, peer, comm, queue));
      case OpKind::kScatter:
        return check(operation, ncclScatter(data.send(), data.receive(), count, type, peer, comm, queue));
      case OpKind::kSend:
        return check(operation, ncclSend(data.send(), count, type, peer, comm, queue));
      case OpKind::kRecv:
        return check(operation, ncclRecv(data.receive(), count, type, peer, comm, queue));
      default:
        return unsupported(operation);
    }
  }

  /// What the member of this index sends to the others in the call that meets this one; its own counts where nobody says.
  std::vector<std::uint64_t> counts_of(const Operation& operation, std::size_t index) const {
    const ProgramIndex program = job_.program_of_rank(job_.communicator(operation.comm).members[index]);
    if (program != kNoProgram)
      for (const Operation& other : job_.program(program).operations)
        if (other.comm == operation.comm && other.kind == operation.kind && other.seq == operation.seq) return job_.extra(other).counts;
    return job_.extra(operation).counts;
  }

  /// The collectives with a count for each member, as torch makes them: messages, and broadcasts, in a group.
  void exchange(const Operation& operation, ncclComm_t comm, ncclDataType_t type, cudaStream_t queue) {
    const OperationExtra& extra = job_.extra(operation);
    const std::size_t ranks = job_.communicator(operation.comm).members.size();
    const auto me = static_cast<std::size_t>(member(operation.comm, rank_));
    std::uint64_t most = 0;
    for (const std::uint64_t count : extra.counts) most = std::max(most, count);
    for (const std::uint64_t count : extra.recv_counts) most = std::max(most, count);
    if (extra.counts.size() != ranks || most > kMostElements) return unsupported(operation);
    Operation largest = operation;
    largest.count = Count::of(kMostElements);
    CallBuffers& data = buffers(largest, -1, operation.kind);
    check(operation, ncclGroupStart());
    for (std::size_t i = 0; i < ranks; ++i) {
      const auto peer = static_cast<int>(i);
      if (operation.kind == OpKind::kAllGatherV) {
        check(operation, ncclBroadcast(data.send(), data.receive(), extra.counts[i], type, peer, comm, queue));
        continue;
      }
      std::uint64_t incoming = i < extra.recv_counts.size() ? extra.recv_counts[i] : 0;
      if (extra.recv_counts.empty())
        if (const auto theirs = counts_of(operation, i); me < theirs.size()) incoming = std::min(theirs[me], kMostElements);
      if (extra.counts[i] > 0) check(operation, ncclSend(data.send(), extra.counts[i], type, peer, comm, queue));
      if (incoming > 0) check(operation, ncclRecv(data.receive(), incoming, type, peer, comm, queue));
    }
    check(operation, ncclGroupEnd());
  }

  void change(const Operation& operation, ncclComm_t comm) {
    const OperationExtra& extra = job_.extra(operation);
    ncclComm_t made = nullptr;
    switch (operation.kind) {
      case OpKind::kSplit: {
        const int color = extra.color.empty() ? 0 : number(extra.color, kSplitNoColor);
        const CommIndex group = made_by(operation);
        ncclComm_t& place = group == kNoComm ? made : comms_[to_size(group)];
        return check(operation, ncclCommSplit(comm, color, number(extra.key, rank_), &place, nullptr));
      }
      case OpKind::kNewGroup:
        return new_group(operation);
      case OpKind::kWindowRegister:
        return register_window(operation, comm);
      case OpKind::kFinalize:
        return check(operation, ncclCommFinalize(comm));
      case OpKind::kFree:
        return end(operation);
      default:
        return unsupported(operation);
    }
  }

  void before_issue(const Operation& operation) {
    if (is_ordered_by_torch(operation)) streams_.order(current_stream(operation), stream(operation));
  }

  /// A handle is an event behind the call.
  void after_issue(const Operation& operation) {
    const OpClass c = op_class(operation.kind);
    if ((c != OpClass::kCollective && c != OpClass::kPointToPoint) || (operation.flags & kOpCaptured) != 0) return;
    const std::string handle(job_.text(operation.handle));
    if (!handle.empty()) cudaEventRecord(streams_.event(handle), stream(operation));
    else if (is_ordered_by_torch(operation)) streams_.order(stream(operation), current_stream(operation));
    if (is_ordered_by_torch(operation) && operation.kind == OpKind::kBarrier && handle.empty())
      cudaStreamSynchronize(current_stream(operation));
  }

  void finish() {
    cudaDeviceSynchronize();
    for (const auto& buffers : issued_)
      if (!buffers->is_right()) outcome_.wrong_data = true;
  }

  const Job& job_;
  std::int32_t rank_;
  UniqueIds ids_;
  NcclRankOptions options_;
  std::mutex mutex_{};
  std::vector<ncclComm_t> comms_;
  std::map<CommIndex, ncclWindow_t> windows_{};
  NcclStreams streams_{};
  std::size_t new_groups_ = 0;
  std::vector<std::unique_ptr<CallBuffers>> issued_{};
  std::uint64_t bytes_ = 0;
  RankOutcome outcome_{};
};

}  // namespace

RankOutcome run_nccl_rank(const Job& job, std::int32_t rank, UniqueIds ids, const NcclRankOptions& options) {
  return NcclRank(job, rank, ids, options).run();
}

}  // namespace lockstep::testing
