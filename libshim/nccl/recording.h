// What is recorded of each NCCL call: the members that rows of functions.def name.
#pragma once

#include <cstdint>

#include "call_scope.h"
#include "cuda/streams.h"
#include "nccl/api.h"
#include "nccl/messages.h"
#include "nccl/names.h"
#include "torch/scope.h"

namespace lockstep::shim::nccl {

inline constexpr int kNoRoot = -1;

/// A communicator whose handle the library tells later: at the end of the group.
struct Pending {
  ncclComm_t* place;
  std::uint64_t made_as;      ///< handle it was registered under; 0 = not registered yet
  std::uint64_t identity;
  std::uint64_t alias;        ///< what others know it by; 0 = nothing
  std::uint32_t parent;       ///< id
  std::int32_t device;
  OpKind kind;
  std::uint32_t commit;       ///< of `record`
  trace::CallRecord* record;  ///< gets the id of the communicator; null = there is none
  const void* thread;         ///< whose group it belongs to: its NcclThread; null = place is free
};

/// What NCCL keeps per thread: the group that is open. Trivial, initial-exec and small, as ThreadState is.
struct NcclThread {
  std::uint32_t depth;
  std::uint32_t launch;
  std::uint32_t epoch;    ///< of Recorder
  std::uint32_t pending;  ///< communicators that its group makes
};
extern constinit thread_local NcclThread t_nccl __attribute__((tls_model("initial-exec")));

/// Registers a communicator that was made before recording began, or in a way that was not seen. Cold.
Comm* adopt(ncclComm_t handle) noexcept;
/// What the library could not say while it made the communicator. It is being used now, so it can. Cold.
void learn_members(Comm& comm, ncclComm_t handle) noexcept;

class Recording {
 public:
  explicit Recording(CallScope& scope) noexcept : scope_(scope) {
    if (__builtin_expect(g_named_epoch != g_recorder.epoch || t_nccl.epoch != g_recorder.epoch, 0)) begin();
  }

  void collective(OpKind kind, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                  cudaStream_t stream) noexcept {
    use(comm);
    takes(count, type);
    call_.agreed_count = count;
    call_.agreed_type = call_.datatype != nullptr && count != 0 ? call_.datatype->hash : 0;
    if (root != kNoRoot || has_root(kind)) {
      call_.peer = root;
      call_.has_root = true;
    }
    enter(kind, stream);
  }
  void reduction(OpKind kind, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                 cudaStream_t stream) noexcept {
    call_.redop = meaning_of(op, to_word(comm));
    if (__builtin_expect(call_.redop == nullptr, 0)) call_.flags |= trace::kCallOpaqueArgs;
    collective(kind, count, type, root, comm, stream);
  }
  void message(OpKind kind, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
               cudaStream_t stream) noexcept {
    use(comm);
    takes(count, type);
    call_.peer = peer;
    call_.aux = trace::kAnyTagWord;  // there are no tags
    call_.seq = trace::kNoPosition;
    Pair* pair = call_.comm != nullptr ? find_pair(call_.comm->id, peer, kind == OpKind::kSend) : nullptr;
    if (pair != nullptr) {
      // Sends and receives that belong together have the same.
      const std::uint64_t signature =
          trace::signature(0, count, call_.datatype != nullptr ? call_.datatype->hash : 0, 0);
      call_.seq = pair->messages++;
      pair->fingerprint = trace::advance(pair->fingerprint, signature, pair->messages);
      call_.detail = pair->fingerprint;
    }
    enter(kind, stream);
  }
  void signal(OpKind kind, std::size_t count, ncclDataType_t type, int peer, int index, ncclComm_t comm,
              cudaStream_t stream) noexcept {
    use(comm);
    takes(count, type);
    call_.peer = peer;
    call_.aux = static_cast<std::uint32_t>(index);
    call_.seq = trace::kNoPosition;
    enter(kind, stream);
  }

  // lifetimes.cc; all cold.
  void wait_signal(int descriptors, const ncclWaitSignalDesc_t* descriptor, ncclComm_t comm,
                   cudaStream_t stream) noexcept;
  void group_start() noexcept;
  void group_end() noexcept;
  void group_simulate_end() noexcept;
  void init(ncclComm_t* comm, int nranks, const ncclUniqueId* ids, int id_count, int rank,
            const ncclConfig_t* config) noexcept;
  void init_all(ncclComm_t* comms, int devices, const int* list) noexcept;
  void split(ncclComm_t comm, int color, int key, ncclComm_t* made, const ncclConfig_t* config) noexcept;
  void shrink(ncclComm_t comm, const int* excluded, int count, ncclComm_t* made, const ncclConfig_t* config,
              int flags) noexcept;
  void grow(ncclComm_t comm, int nranks, const ncclUniqueId* id, int rank, ncclComm_t* made,
            const ncclConfig_t* config) noexcept;
  void window_register(ncclComm_t comm, std::size_t size, int flags) noexcept;
  void finalize(ncclComm_t comm) noexcept;
  void ends(OpKind kind, ncclComm_t comm) noexcept;
  void revoke(ncclComm_t comm) noexcept;
  void opaque(const char* name, ncclComm_t comm) noexcept;
  /// A call of all members in which they only wait for each other.
  void meets(const char* name, ncclComm_t comm) noexcept;
  void redop_made(const ncclRedOp_t* op, ncclDataType_t type, ncclScalarResidence_t residence,
                  ncclComm_t comm) noexcept;
  void redop_gone(ncclRedOp_t op, ncclComm_t comm) noexcept;

  /// NCCL's call came back with `result`.
  void finish(ncclResult_t result) noexcept {
    if (__builtin_expect(after_ != After::kNothing, 0)) finish_slowly(result);
    else scope_.finish(static_cast<int>(result));
  }

 private:
  static std::uint64_t to_word(ncclComm_t comm) noexcept { return reinterpret_cast<std::uint64_t>(comm); }
  void begin() noexcept;
  void use(ncclComm_t comm) noexcept {
    if (__builtin_expect(comm == nullptr, 0)) return;  // the library refuses it
    call_.comm = find_comm(to_word(comm));
    if (__builtin_expect(call_.comm == nullptr, 0)) call_.comm = adopt(comm);
    if (__builtin_expect(call_.comm != nullptr && call_.comm->nranks == 0, 0)) learn_members(*call_.comm, comm);
    if (__builtin_expect(torch::t_torch.group != nullptr, 0) && call_.comm != nullptr && !call_.comm->named) torch::name_below(*call_.comm);
  }
  void takes(std::size_t count, ncclDataType_t type) noexcept {
    call_.datatype = meaning_of(type);
    if (__builtin_expect(call_.datatype == nullptr, 0)) call_.flags |= trace::kCallOpaqueArgs;
    call_.count = count;
  }
  void enter(OpKind kind, cudaStream_t stream) noexcept {
    call_.kind = kind;
    call_.flags |= trace::kCallNonblocking;
    call_.extensions = 1;
    scope_.reserve(1);
    if (auto* issue = scope_.extension<trace::IssueRecord>(0, trace::RecordKind::kIssue)) {
      issue->stream = reinterpret_cast<std::uint64_t>(stream);
      issue->launch = t_nccl.depth != 0 ? t_nccl.launch : 0;
      issue->device = call_.comm != nullptr ? call_.comm->device : -1;
      if (const std::uint32_t capture = cuda::capture_of(stream); __builtin_expect(capture != 0, 0)) {
        issue->capture = capture;
        cuda::note_captured_call(capture);
      } else {
        cuda::mark_busy(stream);
      }
    }
    scope_.enter(call_);
  }
  void enter_creation(OpKind kind, const trace::CreationRecord& arguments) noexcept;
  void enter_local(OpKind kind) noexcept;
  Pending pending(ncclComm_t* place, OpKind kind, std::uint64_t made_as, std::uint64_t identity) const noexcept;
  void finish_slowly(ncclResult_t result) noexcept;
  void finish_group(ncclResult_t result) noexcept;

  CallScope& scope_;
  Call call_;
  enum class After : std::uint8_t { kNothing, kGroupStart, kGroupEnd, kMade, kInitAll, kRedop, kSilent };
  After after_ = After::kNothing;
  // Set by the members that set after_, and read where it says so.
  Pending made_;
  const char* name_;
  std::uint64_t comm_;
  const ncclRedOp_t* redop_;
  ncclDataType_t redop_type_;
  ncclScalarResidence_t residence_;
};

}  // namespace lockstep::shim::nccl
