// The recorder of this process: on or off, its file, and what every thread keeps of it. One instance, static
// storage, no constructor.
#pragma once

#include <atomic>
#include <cstdint>

#include "clock.h"
#include "config.h"
#include "trace_file.h"

namespace lockstep::shim {

enum Phase : std::uint32_t {
  kPhaseNew = 0,  ///< nothing recorded yet; also what a forked child finds
  kPhaseStarting = 1,
  kPhaseOn = 2,
  kPhaseOff = 3,  ///< there can be no trace; one line on stderr said why
};

struct Recorder {
  /// In a page that a fork wipes to 0 = kPhaseNew (MADV_WIPEONFORK), however the fork was made.
  std::atomic<std::uint32_t>* phase = nullptr;
  std::uint32_t epoch = 0;  ///< counts files of this memory image: 1, in a forked child 2
  TraceMap map;
  Config config;
  TracePlace place;
  Anchor loaded;  ///< when the library came in
  std::atomic<std::uint32_t> threads{0};
  char problem[160] = {};  ///< what could not be installed before there was a file; empty = nothing
  void (*on_new_file)() = nullptr;  ///< what a backend must write into the file of a forked child
};
extern constinit Recorder g_recorder;

/// A poll that found nothing, which an equal one may be folded into.
struct Poll {
  trace::CallRecord* record;
  std::uint64_t key;
};

/// What one thread keeps. Trivial and initial-exec: anything else could allocate, or take the loader's lock.
struct ThreadState {
  const void* frame;  ///< frame of the outermost recorded call that is running; null = none
  std::byte* next;    ///< next record of the thread's block
  std::byte* end;
  std::uint32_t commit;  ///< of that block
  std::uint32_t epoch;   ///< of Recorder; another one = everything here belongs to the parent of a fork
  std::uint32_t thread;  ///< kernel's id
  std::uint32_t index;
  std::uint32_t slot;        ///< of the block
  const void* foreign_site;  ///< call site that a Fortran entry saw, for the C entry behind it
  std::uint32_t scope_site;  ///< call site of the Python code that calls below belong to; 0 = none
  std::uint32_t polls;       ///< used of `poll`; loops ask about a few things in turn
  Poll poll[4];
};
extern constinit thread_local ThreadState t_thread __attribute__((tls_model("initial-exec")));

/// Makes the file at the first recorded call. True if recording is on now. Keeps errno. Cold.
bool start_recorder() noexcept;

inline bool recorder_is_on() noexcept {
  const auto* phase = g_recorder.phase;
  return phase != nullptr && phase->load(std::memory_order_acquire) == kPhaseOn;
}

/// Sets bits in FileHeader::state.
inline void mark_state(std::uint32_t bits) noexcept {
  if (g_recorder.map.header != nullptr) std::atomic_ref(g_recorder.map.header->state).fetch_or(bits);
}

/// Keeps errno for the time of its life: the slow paths make system calls.
class ErrnoKeeper {
 public:
  ErrnoKeeper() noexcept;
  ~ErrnoKeeper();
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int value_;
};

}  // namespace lockstep::shim
