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

#include "nccl_api.h"
#include "nccl_data.h"
#include "progress.h"
#include "sizes.h"

namespace lockstep::testing {
namespace {

using namespace nccl;

constexpr unsigned kNonBlocking = 1;   // cudaStreamNonBlocking
constexpr unsigned kNoTiming = 2;      // cudaEventDisableTiming
constexpr std::uint64_t kCheckedBytes = 64U << 20;

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
      if (member(CommIndex{static_cast<std::uint32_t>(i)}, rank_) >= 0 &&
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
    if (result != ncclSuccess && result != ncclInProgress)
      fail(operation, std::string(ncclGetErrorString(result)) + " (" + ncclGetLastError(nullptr) + ")");
  }

  void make(CommIndex comm) {
    const std::size_t i = to_size(comm);
    const auto ranks = static_cast<int>(job_.communicator(comm).members.size());
    const ncclResult_t result = ncclCommInitRank(&comms_[i], ranks, ids_[i], member(comm, rank_));
    if (result != ncclSuccess) outcome_.error = std::string("ncclCommInitRank: ") + ncclGetLastError(nullptr);
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
      if (operation.launch != launch && previous != nullptr) close(*previous);
      if (options_.operation != nullptr) *options_.operation = i;
      if (operation.launch != 0 && launch == 0) check(operation, ncclGroupStart());
      launch = operation.launch;
      issue(operation);
      if (launch != 0) launched.push_back(&operation);
      else after_issue(operation);
      previous = &operation;
      if (failed()) return;
    }
    if (previous != nullptr) close(*previous);
  }

  bool failed() {
    const std::lock_guard lock(mutex_);
    return !outcome_.error.empty();
  }

  cudaStream_t stream(const Operation& operation) {
    std::string name(job_.text(operation.stream));
    // torch has a stream for each communicator.
    if (name.empty() && job_.library() == Library::kTorch) name = "communicator " + std::to_string(to_size(operation.comm));
    return stream(name);
  }

  cudaStream_t stream(const std::string& name) {
    const std::lock_guard lock(mutex_);
    cudaStream_t& found = streams_[name];
    if (found == nullptr) cudaStreamCreateWithFlags(&found, kNonBlocking);
    return found;
  }

  cudaEvent_t event(const std::string& handle) {
    const std::lock_guard lock(mutex_);
    cudaEvent_t& found = events_[handle];
    if (found == nullptr) cudaEventCreateWithFlags(&found, kNoTiming);
    return found;
  }

  CallBuffers& buffers(const Operation& operation, int peer, OpKind kind) {
    const DataCall call{kind, job_.datatype(operation.datatype), job_.redop(operation.redop), run_count(operation.count),
                        member(operation.comm, rank_), static_cast<int>(job_.communicator(operation.comm).members.size()), peer};
    const std::lock_guard lock(mutex_);
    bytes_ += call.count * 8 * static_cast<std::uint64_t>(call.ranks);
    issued_.push_back(std::make_unique<CallBuffers>(call, options_.check_data && bytes_ < kCheckedBytes));
    return *issued_.back();
  }

  void issue(const Operation& operation) {
    if (is_collective(operation.kind) || is_point_to_point(operation.kind)) {
      if (operation.comm == kNoComm || member(operation.comm, rank_) < 0) return fail(operation, "this rank is no member");
      if (operation.kind == OpKind::kInit) return make(operation.comm);
      if (comms_[to_size(operation.comm)] == nullptr) return fail(operation, "the communicator has not been made");
      return communicate(operation, comms_[to_size(operation.comm)]);
    }
    const std::string handle(job_.text(operation.handle));
    const std::string name(job_.text(operation.stream));
    switch (operation.kind) {
      case OpKind::kCompute:
        usleep(500);
        break;
      case OpKind::kExit:
        break;
      case OpKind::kWait:
        if (handle.empty()) cudaDeviceSynchronize();
        else cudaEventSynchronize(event(handle));
        break;
      case OpKind::kEventSync:
        cudaEventSynchronize(event(handle));
        break;
      case OpKind::kStreamSync:
        cudaStreamSynchronize(stream(name));
        break;
      case OpKind::kDeviceSync:
        cudaDeviceSynchronize();
        break;
      case OpKind::kEventRecord:
        cudaEventRecord(event(handle), stream(name));
        break;
      case OpKind::kStreamWait:
        cudaStreamWaitEvent(stream(name), event(handle), 0);
        break;
      case OpKind::kDestroy:
      case OpKind::kAbort:
        end(operation);
        break;
      default:
        unsupported(operation);
    }
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
    const auto type = static_cast<ncclDataType_t>(nccl_datatype(job_.datatype(operation.datatype)));
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
        return check(operation, ncclCommSplit(comm, color, number(extra.key, rank_), &made, nullptr));
      }
      case OpKind::kShrink: {
        std::vector<int> excluded;
        const auto& members = job_.communicator(operation.comm).members;
        for (std::size_t i = 0; i < members.size(); ++i)
          if (std::ranges::find(extra.members, members[i]) == extra.members.end()) excluded.push_back(static_cast<int>(i));
        return check(operation, ncclCommShrink(comm, excluded.data(), static_cast<int>(excluded.size()), &made, nullptr, 0));
      }
      case OpKind::kWindowRegister: {
        ncclWindow_t window = nullptr;
        CallBuffers& data = buffers(operation, -1, operation.kind);
        return check(operation, ncclCommWindowRegister(comm, data.send(), 8, &window, kWindowSymmetric));
      }
      case OpKind::kFinalize:
        return check(operation, ncclCommFinalize(comm));
      case OpKind::kFree:
        return end(operation);
      default:
        return unsupported(operation);
    }
  }

  /// A handle is an event behind the call; torch's plain calls are waited for.
  void after_issue(const Operation& operation) {
    const OpClass c = op_class(operation.kind);
    if (c != OpClass::kCollective && c != OpClass::kPointToPoint) return;
    const std::string handle(job_.text(operation.handle));
    if (!handle.empty()) cudaEventRecord(event(handle), stream(operation));
    else if (job_.library() == Library::kTorch && operation.launch == 0 && to_size(operation.stream) == 0)
      cudaStreamSynchronize(stream(operation));
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
  std::map<std::string, cudaStream_t> streams_{};
  std::map<std::string, cudaEvent_t> events_{};
  std::vector<std::unique_ptr<CallBuffers>> issued_{};
  std::uint64_t bytes_ = 0;
  RankOutcome outcome_{};
};

}  // namespace

bool is_made_by_a_line(const Job& job, CommIndex comm) {
  for (const Program& program : job.programs())
    for (const Operation& operation : program.operations)
      if (operation.kind == OpKind::kInit && operation.comm == comm) return true;
  return false;
}

RankOutcome run_nccl_rank(const Job& job, std::int32_t rank, UniqueIds ids, const NcclRankOptions& options) {
  return NcclRank(job, rank, ids, options).run();
}

}  // namespace lockstep::testing
