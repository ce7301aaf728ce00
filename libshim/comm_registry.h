// Communicator handle -> what the recorder knows of it: identity, place in it, position, fingerprint. Fixed
// size, no allocation.
#pragma once

#include <atomic>
#include <cstdint>

#include "lockstep/trace_record.h"
#include "spin_lock.h"

namespace lockstep::shim {

struct Comm {
  std::atomic<std::uint64_t> handle{0};  ///< 0 = never used, kGone = free again
  std::uint32_t id = 0;                  ///< in the trace; 0 = its side record found no room
  std::atomic<std::uint32_t> inside{0};  ///< thread that is in a collective on it
  std::uint64_t calls = 0;
  std::uint64_t fingerprint = 0;
  trace::CommEntry* entry = nullptr;  ///< null = table full
  std::uint64_t members_hash = 0;
  const trace::CommRecord* record = nullptr;  ///< in the side area
  std::int32_t rank = 0;
  std::int32_t nranks = 0;
  std::uint8_t flags = 0;  ///< trace::CommFlags
  std::int32_t device = -1;
  std::uint64_t identity = 0;       ///< as in the trace
  bool named = false;               ///< the process group of torch that it works for was written
  std::uint32_t children[3] = {};   ///< NCCL: splits, shrinks and grows of it so far
};

/// A new communicator as a backend describes it.
struct NewComm {
  std::uint64_t handle = 0;
  const Comm* parent = nullptr;
  OpKind kind = OpKind::kInit;
  trace::Library library = trace::Library::kMpi;
  std::int32_t rank = 0;
  std::int32_t nranks = 0;
  std::uint8_t flags = 0;
  std::int32_t device = -1;
  const char* name = "";
  /// World rank of each member, and of the other group's; null = as in `same_members`, or not known.
  const std::int32_t* members = nullptr;
  const std::int32_t* remote = nullptr;
  std::int32_t remote_ranks = 0;
  const Comm* same_members = nullptr;
  std::uint64_t identity = 0;  ///< where something other than the members says which it is; else 0
};

inline constexpr std::uint64_t kGone = ~std::uint64_t{0};
inline constexpr std::uint32_t kCommSlots = 4096;
extern constinit Comm g_comms[kCommSlots];

/// Null for a handle that was never registered. A few ns.
inline Comm* find_comm(std::uint64_t handle) noexcept {
  std::uint64_t at = spread(handle);
  for (std::uint32_t tries = 0; tries < kCommSlots; ++tries, ++at) {
    Comm& comm = g_comms[at % kCommSlots];
    const std::uint64_t found = comm.handle.load(std::memory_order_acquire);
    if (found == handle) return &comm;
    if (found == 0) return nullptr;
  }
  return nullptr;
}

/// Registers and writes the side record; the id, 0 if there was no room. Makes no system call. Cold.
std::uint32_t add_comm(const NewComm& made) noexcept;
/// The library's handle of one that was registered under another, before there was any. Null if that is unknown. Cold.
Comm* bind_comm(std::uint64_t made_as, std::uint64_t handle) noexcept;
/// Some of its members know it under `identity`. Cold.
void write_alias(std::uint32_t comm, std::uint64_t identity) noexcept;
/// Writes the side record anew, with what the library has told since. Cold.
void describe_again(Comm& comm, std::int32_t rank, std::int32_t nranks, std::int32_t device) noexcept;
/// Before the library frees it: its handle may come back at once. Cold.
void remove_comm(std::uint64_t handle) noexcept;
/// All gone, ids start anew: for a new file after a fork.
void reset_comms() noexcept;

/// Writes the new state of `comm` where a reader finds it after the ring has wrapped.
inline void publish_fingerprint(Comm& comm) noexcept {
  trace::CommEntry* entry = comm.entry;
  if (entry == nullptr) return;
  const std::uint64_t calls = comm.calls;
  trace::Checkpoint& now = entry->now[calls & 1];
  std::atomic_ref(now.calls).store(0, std::memory_order_relaxed);
  std::atomic_ref(now.fingerprint).store(comm.fingerprint, std::memory_order_release);
  std::atomic_ref(now.calls).store(calls, std::memory_order_release);
  if (__builtin_expect((calls & ((1U << trace::kFirstLevel) - 1)) != 0, 1)) return;
  const auto zeros = static_cast<std::uint32_t>(__builtin_ctzll(calls));
  const std::uint32_t top =
      zeros - trace::kFirstLevel < trace::kLevels ? zeros - trace::kFirstLevel : trace::kLevels - 1;
  for (std::uint32_t level = 0; level <= top; ++level) {
    trace::Checkpoint& point = entry->latest[level][(calls >> (trace::kFirstLevel + level)) & 1];
    std::atomic_ref(point.calls).store(0, std::memory_order_relaxed);
    std::atomic_ref(point.fingerprint).store(comm.fingerprint, std::memory_order_release);
    std::atomic_ref(point.calls).store(calls, std::memory_order_release);
  }
  if ((calls & (calls - 1)) == 0) entry->first[top] = comm.fingerprint;
}

/// Two threads were in `comm` at once: its positions mean nothing from now on.
void mark_concurrent(Comm& comm) noexcept;
/// A call on `comm` had an argument of unknown meaning.
void mark_unverified(Comm& comm) noexcept;

}  // namespace lockstep::shim
