// Recording of what begins and ends: MPI itself, communicators, datatypes, operators; and the end of every
// recorded call.
#pragma once

#include "mpi/collectives.h"
#include "mpi/messages.h"

namespace lockstep::shim::mpi::LOCKSTEP_BACKEND {

inline void Recording::init() noexcept {
  call_.kind = OpKind::kInit;
  after_ = After::kInit;
  scope_.enter(call_);
}

inline void Recording::finalize() noexcept {
  call_.kind = OpKind::kFinalize;
  call_.comm = find_comm(to_word(g_constants.world));
  after_ = After::kFinalize;
  std::atomic_ref(g_recorder.map.header->finalized).store(1, std::memory_order_release);
  scope_.enter(call_);
}

inline void Recording::abort(MPI_Comm comm, int code) noexcept {
  on(comm);
  call_.kind = OpKind::kAbort;
  g_recorder.map.header->abort_code = code;
  std::atomic_ref(g_recorder.map.header->aborted).store(1, std::memory_order_release);
  scope_.enter(call_);
}

inline void Recording::same_members() noexcept {
  made_same_ = true;
  enter_collective();
}

inline void Recording::any_members() noexcept { enter_collective(); }

inline void Recording::split(int color, int key) noexcept {
  call_.extensions = 1;
  scope_.reserve(1);
  if (auto* record = scope_.extension<trace::CreationRecord>(0, trace::RecordKind::kCreation)) {
    record->color = color == MPI_UNDEFINED ? trace::kNoColor : color;
    record->key = key;
  }
  enter_collective();
}

inline void Recording::of(MPI_Group group, int tag) noexcept {
  std::int32_t size = 0;
  std::uint64_t hash = 0;
  // Asking an invalid handle would raise the host's error in our name; null is the one that is worth telling.
  if (group != g_constants.null_group && call_.comm != nullptr) hash = hash_group(group, size);
  if (call_.kind == OpKind::kCreateGroup) {
    call_.has_position = false;
    call_.seq = trace::kNoPosition;
  }
  call_.extensions = 1;
  scope_.reserve(1);
  if (auto* record = scope_.extension<trace::CreationRecord>(0, trace::RecordKind::kCreation)) {
    record->members = size;
    record->group_hash = hash;
    record->tag = static_cast<std::uint32_t>(tag);
  }
  enter_collective();
}

inline void Recording::frees(OpKind kind, const MPI_Comm* comm) noexcept {
  call_.kind = kind;
  if (comm != nullptr) on(*comm);
  Comm* freed = call_.comm;
  enter_collective();
  // Before the library does it: another thread may be given the same handle at once.
  if (freed != nullptr) {
    scope_.forget_collective();
    remove_comm(to_word(*comm));
  }
}

inline void Recording::names(MPI_Comm comm, const char* name) noexcept {
  silent_ = true;
  const Comm* known = find_comm(to_word(comm));
  if (known != nullptr && known->id != 0 && name != nullptr)
    write_text(trace::SideKind::kCommName, known->id, name);
}

inline void Recording::learns(MPI_Datatype* datatype) noexcept {
  silent_ = true;
  datatype_ = datatype;
  after_ = After::kDatatype;
}

inline void Recording::learns_op(MPI_Op* op) noexcept {
  silent_ = true;
  redop_ = op;
  after_ = After::kRedop;
}

inline void Recording::forgets(const MPI_Datatype* datatype) noexcept {
  silent_ = true;
  if (datatype != nullptr) g_datatypes.remove(to_word(*datatype));
}

inline void Recording::forgets_op(const MPI_Op* op) noexcept {
  silent_ = true;
  if (op != nullptr) g_redops.remove(to_word(*op));
}

inline void Recording::finish_made(int result) noexcept {
  if (result != MPI_SUCCESS || made_ == nullptr || *made_ == g_constants.null_comm) return;
  scope_.set_aux(register_comm(*made_, call_.kind, call_.comm, made_same_ ? call_.comm : nullptr, "", 0));
}

inline void Recording::finish(int result) noexcept {
  if (silent_) {
    if (result == MPI_SUCCESS && after_ == After::kDatatype) learn_datatype(*datatype_);
    if (result == MPI_SUCCESS && after_ == After::kRedop) learn_redop(*redop_);
    scope_.leave();
    return;
  }
  if (request_ != nullptr && result == MPI_SUCCESS) remember_request(to_word(*request_), request_id_);
  finish_receive(result);
  finish_poll(result);
  finish_made(result);
  if (after_ == After::kInit && result == MPI_SUCCESS) {
    scope_.set_aux(begin_trace(0));
  }
  if (after_ == After::kFinalize && result == MPI_SUCCESS) {
    std::atomic_ref(g_recorder.map.header->finalized).store(2, std::memory_order_release);
  }
  scope_.finish(result);
}

}  // namespace lockstep::shim::mpi::LOCKSTEP_BACKEND
