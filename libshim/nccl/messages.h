// Messages between this rank and each peer, per communicator and direction: how many, and the fingerprint of all of them. A fixed table;
// pairs beyond it are recorded without.
#pragma once

#include <atomic>
#include <cstdint>

#include "lockstep/trace_record.h"
#include "spin_lock.h"

namespace lockstep::shim::nccl {

struct Pair {
  std::atomic<std::uint64_t> key{0};
  std::uint64_t fingerprint = 0;
  std::uint32_t messages = 0;
};
inline constexpr std::uint32_t kPairs = 8192;
extern constinit Pair g_pairs[kPairs];

/// Null when there is no place. `comm` is the id in the trace; one thread at a time uses a communicator, as NCCL demands.
inline Pair* find_pair(std::uint32_t comm, std::int32_t peer, bool sends) noexcept {
  if (comm == 0) return nullptr;
  const std::uint64_t key =
      std::uint64_t{comm} << 33 | std::uint64_t{sends} << 32 | static_cast<std::uint32_t>(peer);
  std::uint64_t at = spread(key);
  for (std::uint32_t tries = 0; tries < 16; ++tries, ++at) {
    Pair& pair = g_pairs[at % kPairs];
    std::uint64_t found = pair.key.load(std::memory_order_relaxed);
    if (found == 0 && pair.key.compare_exchange_strong(found, key, std::memory_order_relaxed)) found = key;
    if (found == key) return &pair;
  }
  return nullptr;
}

/// For a new file after a fork.
void reset_pairs() noexcept;

}  // namespace lockstep::shim::nccl
