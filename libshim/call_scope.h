// One intercepted call: guard against nesting, record at entry, completion at return. Everything here is on
// the host's path: no lock, allocation or system call, except where a function says "cold".
#pragma once

#include <atomic>
#include <cstdint>

#include "call_site.h"
#include "comm_registry.h"
#include "name_registry.h"
#include "recorder.h"
#include "trace_writer.h"

namespace lockstep::shim {

/// A call as a backend describes it.
struct Call {
  OpKind kind = OpKind::kUnknown;
  std::uint8_t flags = 0;       ///< trace::CallFlags
  std::uint8_t extensions = 0;  ///< records that will be filled through CallScope::extension
  Comm* comm = nullptr;
  std::uint64_t count = 0;  ///< units
  const Meaning* datatype = nullptr;
  const Meaning* redop = nullptr;
  std::int32_t peer = trace::kNoPeer;
  std::uint32_t aux = 0;
  std::uint64_t detail = 0;  ///< not for collectives
  std::uint32_t seq = 0;     ///< not for collectives
  // What goes into a collective's fingerprint beside kind, flags and redop.
  bool is_poll = false;
  bool has_root = false;
  bool has_position = true;  ///< false: not all members of `comm` make this call
  std::uint64_t agreed_count = 0;
  std::uint64_t agreed_type = 0;
};

class CallScope {
 public:
  /// `frame` is __builtin_frame_address(0) of the entry, `caller` its return address. Inactive when recording
  /// is off, or the call was made from inside another one of this thread.
  CallScope(const void* frame, const void* caller) noexcept;
  ~CallScope() = default;
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  bool active() const noexcept { return active_; }
  /// The caller in the host program, also where a Fortran entry stands between.
  const void* caller() const noexcept { return caller_; }

  /// Records the entry. Collectives advance their communicator. Afterwards `record()` may be null: dropped.
  void enter(const Call& call) noexcept;
  trace::CallRecord* record() const noexcept { return record_; }

  /// The i-th extension record to fill, between `reserve` and `enter`; null when there is none.
  template <class Record>
  Record* extension(std::uint32_t index, trace::RecordKind kind) noexcept {
    if (record_ == nullptr) return nullptr;
    auto* record = reinterpret_cast<Record*>(record_ + 1 + index);
    *record = Record{};
    record->kind = static_cast<std::uint8_t>(kind);
    return record;
  }
  /// Room for a call with `extensions`; to be called before `extension` and `enter`.
  void reserve(std::uint32_t extensions) noexcept;

  /// The library call came back with `result`; the host may have changed nothing of ours in between.
  void finish(int result) noexcept;
  /// Stores `aux` of the record anew (tag, request, communicator), before `finish`.
  void set_aux(std::uint32_t aux) noexcept;
  /// Ends the scope without a record: nothing was entered.
  void leave() noexcept;

  /// Folds this poll into the record of an equal one (same key, same place) if there were only polls since;
  /// true then, and `enter` is not called. The record is entered again.
  bool fold_poll(OpKind kind, std::uint64_t key) noexcept;
  /// After an unsuccessful poll: later equal ones may be folded into it.
  void keep_poll(std::uint64_t key) noexcept;
  /// After a successful one: what comes next is another situation.
  void drop_polls() noexcept { t_thread.polls = 0; }
  /// Afterwards `reserve` and `enter` make one more record, of the same call: it stands for several ranks of this process.
  void again() noexcept;
  /// Calls made from inside this one are recorded too: it only brackets them.
  void open_for_others() noexcept;
  /// The communicator ends with this call: nothing of it is touched at return.
  void forget_collective() noexcept;

 private:
  void leave_collective() noexcept;
  bool active_ = false;
  bool reserved_ = false;
  bool folded_ = false;
  std::uint32_t site_ = 0;
  std::uint64_t enter_ticks_ = 0;
  const void* caller_ = nullptr;
  trace::CallRecord* record_ = nullptr;
  Comm* collective_ = nullptr;
};

// ---- inline: the whole path is here, so that it is compiled into each entry

/// Nested calls, stale guards, start and fork: everything that is not the usual case. True if this call is
/// recorded.
bool enter_slowly(ThreadState& thread, const void* frame) noexcept;

inline CallScope::CallScope(const void* frame, const void* caller) noexcept : caller_(caller) {
  ThreadState& thread = t_thread;
  if (__builtin_expect(thread.frame != nullptr || !recorder_is_on() || thread.epoch != g_recorder.epoch, 0)) {
    if (!enter_slowly(thread, frame)) return;
  }
  thread.frame = frame;
  if (__builtin_expect(thread.foreign_site != nullptr, 0)) {
    caller_ = thread.foreign_site;
    thread.foreign_site = nullptr;
  }
  active_ = true;
  enter_ticks_ = ticks();
  site_ = __builtin_expect(thread.scope_site != 0, 0) ? thread.scope_site : site_id(caller_);
}

inline void CallScope::reserve(std::uint32_t extensions) noexcept {
  record_ = reinterpret_cast<trace::CallRecord*>(reserve_records(t_thread, 1 + extensions));
  reserved_ = true;
}

inline void CallScope::enter(const Call& call) noexcept {
  ThreadState& thread = t_thread;
  if (!reserved_) reserve(call.extensions);
  std::uint64_t detail = call.detail;
  std::uint32_t seq = call.seq;
  if (call.comm != nullptr && is_collective(call.kind) && call.has_position) {
    Comm& comm = *call.comm;
    const std::uint32_t inside = comm.inside.load(std::memory_order_relaxed);
    if (__builtin_expect(inside != 0 && inside != thread.thread, 0)) mark_concurrent(comm);
    comm.inside.store(thread.thread, std::memory_order_relaxed);
    collective_ = &comm;
    if (__builtin_expect((call.flags & trace::kCallOpaqueArgs) != 0, 0)) mark_unverified(comm);
    const bool root = call.has_root;
    const std::uint64_t shape =
        static_cast<std::uint64_t>(call.kind) |
        static_cast<std::uint64_t>(call.flags & (trace::kCallNonblocking | trace::kCallPersistent)) << 8 |
        (root ? static_cast<std::uint64_t>(static_cast<std::uint32_t>(call.peer + 1)) << 32 : 0);
    const std::uint64_t signature = trace::signature(shape, call.agreed_count, call.agreed_type,
                                                     call.redop != nullptr ? call.redop->hash : 0);
    seq = static_cast<std::uint32_t>(comm.calls);
    comm.calls += 1;
    comm.fingerprint = trace::advance(comm.fingerprint, signature, comm.calls);
    detail = comm.fingerprint;
    publish_fingerprint(comm);
  }
  trace::CallRecord* record = record_;
  if (__builtin_expect(record == nullptr, 0)) return;
  for (std::uint32_t i = call.extensions; i > 0; --i) {
    auto* extension = reinterpret_cast<trace::NameRecord*>(record + i);
    std::atomic_ref(extension->commit).store(thread.commit, std::memory_order_release);
  }
  if (!call.is_poll) thread.polls = 0;
  record->enter_ticks = enter_ticks_;
  record->return_ticks = 0;
  record->count = call.count;
  record->detail = detail;
  record->comm = call.comm != nullptr ? call.comm->id : 0;
  record->seq = seq;
  record->peer = call.peer;
  record->call_site = site_;
  record->datatype = call.datatype != nullptr ? call.datatype->id : 0;
  record->redop = call.redop != nullptr ? call.redop->id : 0;
  record->kind = static_cast<std::uint8_t>(call.kind);
  record->flags = call.flags;
  record->result = 0;
  record->extensions = call.extensions;
  publish_word(&record->aux, call.aux | std::uint64_t{thread.commit} << 32);
}

inline void CallScope::set_aux(std::uint32_t aux) noexcept {
  if (record_ != nullptr) std::atomic_ref(record_->aux).store(aux, std::memory_order_relaxed);
}

inline void CallScope::leave() noexcept {
  t_thread.frame = nullptr;
  leave_collective();
}

inline void CallScope::forget_collective() noexcept {
  leave_collective();
  collective_ = nullptr;
}

inline void CallScope::open_for_others() noexcept {
  t_thread.frame = nullptr;
  forget_collective();
}

inline void CallScope::again() noexcept {
  forget_collective();
  record_ = nullptr;
  reserved_ = false;
}

inline void CallScope::leave_collective() noexcept {
  if (collective_ == nullptr) return;
  ThreadState& thread = t_thread;
  if (collective_->inside.load(std::memory_order_relaxed) != thread.thread) {
    mark_concurrent(*collective_);
  } else {
    collective_->inside.store(0, std::memory_order_relaxed);
  }
}

inline void CallScope::finish(int result) noexcept {
  t_thread.frame = nullptr;
  leave_collective();
  trace::CallRecord* record = record_;
  // Another number in it: the process forked inside the call, or the block was lost to a jump.
  if (record == nullptr || !recorder_is_on()) return;
  record->result = result < 0 || result > 255 ? 255 : static_cast<std::uint8_t>(result);
  std::atomic_ref(record->return_ticks).store(ticks(), std::memory_order_release);
}

}  // namespace lockstep::shim
