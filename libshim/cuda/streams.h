// What the recorder keeps of streams and events: which of them have communicator work that the host has not waited for, and which are
// being captured into a graph. Fixed tables, no call into CUDA; what does not fit is not known, and nothing is claimed of it.
#pragma once

#include <atomic>
#include <cstdint>

#include "spin_lock.h"

struct CUstream_st;
struct CUevent_st;

namespace lockstep::shim::cuda {

/// The legacy default stream has two names, 0 and 1.
inline std::uint64_t stream_word(const CUstream_st* stream) noexcept {
  const auto word = reinterpret_cast<std::uint64_t>(stream);
  return word == 1 ? 0 : word;
}

struct Stream {
  std::atomic<std::uint64_t> key{0};  ///< handle + 1; 0 = free
  std::atomic<std::uint32_t> busy{0};
  std::atomic<std::uint32_t> capture{0};  ///< number of the capture that it is part of; 0 = none
};
inline constexpr std::uint32_t kStreams = 1024;
extern constinit Stream g_streams[kStreams];

struct Event {
  std::atomic<std::uint64_t> handle{0};
  std::atomic<std::uint32_t> busy{0};
  std::atomic<std::uint32_t> capture{0};
};
inline constexpr std::uint32_t kEvents = 4096;
extern constinit Event g_events[kEvents];

/// Whether anything communicated on any stream, so that waits may matter.
extern constinit std::atomic<bool> g_any_busy;
extern constinit std::atomic<std::uint32_t> g_open_captures;
/// Device that this thread has set; 0 is CUDA's own choice.
extern constinit thread_local int t_device __attribute__((tls_model("initial-exec")));

/// Null for one that was never marked (`make` false), or that finds no place.
inline Stream* find_stream(const CUstream_st* stream, bool make) noexcept {
  const std::uint64_t key = stream_word(stream) + 1;
  std::uint64_t at = spread(key);
  for (std::uint32_t tries = 0; tries < 16; ++tries, ++at) {
    Stream& slot = g_streams[at % kStreams];
    std::uint64_t found = slot.key.load(std::memory_order_relaxed);
    if (found == key) return &slot;
    if (found != 0) continue;
    if (!make) return nullptr;
    if (slot.key.compare_exchange_strong(found, key, std::memory_order_relaxed) || found == key) return &slot;
  }
  return nullptr;
}

/// One place an event: a newer one pushes an older out, which then carries nothing.
inline Event& event_slot(const CUevent_st* event) noexcept {
  return g_events[spread(reinterpret_cast<std::uint64_t>(event)) % kEvents];
}
inline bool is_kept(const Event& slot, const CUevent_st* event) noexcept {
  return slot.handle.load(std::memory_order_relaxed) == reinterpret_cast<std::uint64_t>(event);
}

/// A communicator call was issued to it.
inline void mark_busy(const CUstream_st* stream) noexcept {
  if (Stream* slot = find_stream(stream, true)) slot->busy.store(1, std::memory_order_relaxed);
  if (__builtin_expect(!g_any_busy.load(std::memory_order_relaxed), 0)) {
    g_any_busy.store(true, std::memory_order_relaxed);
  }
}

/// Number of the capture that a call on `stream` goes into; 0 = it is executed.
inline std::uint32_t capture_of(const CUstream_st* stream) noexcept {
  if (__builtin_expect(g_open_captures.load(std::memory_order_relaxed) == 0, 1)) return 0;
  const Stream* slot = find_stream(stream, false);
  return slot != nullptr ? slot->capture.load(std::memory_order_relaxed) : 0;
}

/// A call was captured: launches of its graph are recorded from now on.
void note_captured_call(std::uint32_t capture) noexcept;
/// For a new file after a fork.
void reset_streams() noexcept;

}  // namespace lockstep::shim::cuda
