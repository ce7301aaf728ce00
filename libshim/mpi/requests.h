// Request handle -> request id, and how many messages went to and came from each peer. Fixed tables that
// forget rather than grow.
#pragma once

#include <atomic>
#include <cstdint>

#include "lockstep/trace_record.h"
#include "spin_lock.h"

namespace lockstep::shim::mpi {

struct RequestSlot {
  std::atomic<std::uint64_t> handle{0};
  std::atomic<std::uint32_t> id{0};
};
inline constexpr std::uint32_t kRequestSlots = 16384;
extern constinit RequestSlot g_requests[kRequestSlots];
extern constinit std::atomic<std::uint32_t> g_next_request;

/// Two places per handle; a newer request may push an older one out, which is then "not known" to its wait.
inline void remember_request(std::uint64_t handle, std::uint32_t id) noexcept {
  const std::uint64_t at = spread(handle);
  RequestSlot* slot = &g_requests[at % kRequestSlots];
  if (slot->handle.load(std::memory_order_relaxed) != handle) {
    RequestSlot* other = &g_requests[(at + 1) % kRequestSlots];
    const bool other_older =
        other->id.load(std::memory_order_relaxed) < slot->id.load(std::memory_order_relaxed);
    if (other->handle.load(std::memory_order_relaxed) == handle || other_older) slot = other;
  }
  slot->handle.store(0, std::memory_order_release);
  slot->id.store(id, std::memory_order_relaxed);
  slot->handle.store(handle, std::memory_order_release);
}

inline std::uint32_t request_id(std::uint64_t handle) noexcept {
  const std::uint64_t at = spread(handle);
  for (std::uint64_t i = 0; i < 2; ++i) {
    const RequestSlot& slot = g_requests[(at + i) % kRequestSlots];
    if (slot.handle.load(std::memory_order_acquire) == handle) return slot.id.load(std::memory_order_relaxed);
  }
  return trace::kUnknownRequest;
}

/// Position of the next message between this process and `peer` on communicator `comm`; kNoPosition when
/// there are too many pairs.
inline constexpr std::uint32_t kPairSlots = 16384;
struct PairSlot {
  std::atomic<std::uint64_t> key{0};
  std::atomic<std::uint32_t> messages{0};
};
extern constinit PairSlot g_pairs[kPairSlots];

inline std::uint32_t next_message(std::uint32_t comm, std::int32_t peer, bool sending,
                                  bool one_thread) noexcept {
  if (comm == 0) return trace::kNoPosition;
  const std::uint64_t key =
      std::uint64_t{comm} << 33 | std::uint64_t{sending} << 32 | static_cast<std::uint32_t>(peer);
  std::uint64_t at = spread(key);
  for (std::uint32_t tries = 0; tries < 16; ++tries, ++at) {
    PairSlot& slot = g_pairs[at % kPairSlots];
    std::uint64_t found = slot.key.load(std::memory_order_relaxed);
    if (found == 0 && slot.key.compare_exchange_strong(found, key, std::memory_order_relaxed)) found = key;
    if (found != key) continue;
    if (!one_thread) return slot.messages.fetch_add(1, std::memory_order_relaxed);
    const std::uint32_t count = slot.messages.load(std::memory_order_relaxed);
    slot.messages.store(count + 1, std::memory_order_relaxed);
    return count;
  }
  return trace::kNoPosition;
}

/// A message that a matched probe found: where it came from. Few are open at a time.
struct FoundMessage {
  std::atomic<std::uint64_t> handle{0};
  std::uint64_t comm = 0;  ///< handle of the communicator
  std::int32_t source = 0;
  std::uint32_t tag = 0;
};
inline constexpr std::uint32_t kFoundSlots = 256;
extern constinit FoundMessage g_found[kFoundSlots];

inline FoundMessage& found_message(std::uint64_t handle) noexcept {
  return g_found[spread(handle) % kFoundSlots];
}

/// For a new file after a fork.
void reset_requests() noexcept;

}  // namespace lockstep::shim::mpi
