// How far each rank of a running Job has come: a page that the ranks write and the runner reads. job_runner only.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>

namespace lockstep::testing {

enum class RankPhase : std::uint32_t { kStarting = 0, kRunning = 1, kFinishing = 2, kEnded = 3 };

struct RankProgress {
  std::atomic<std::uint32_t> phase;
  std::atomic<std::uint32_t> operation;  ///< the rank is in this one of its program, or past the last
  std::atomic<std::uint32_t> wrong_data;
  std::atomic<std::int32_t> pid;
};

/// Maps the page of `ranks` ranks from an open file; null: it cannot be.
inline RankProgress* map_progress(int descriptor, int ranks) {
  void* memory = mmap(nullptr, static_cast<std::size_t>(ranks) * sizeof(RankProgress), PROT_READ | PROT_WRITE, MAP_SHARED,
                      descriptor, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<RankProgress*>(memory);
}

enum RunnerExit : int {
  kRunEnded = 0,
  kRunFailed = 1,       ///< a rank failed, or ended otherwise than the Job says
  kRunUsage = 2,
  kRunUnreadable = 3,   ///< the Job cannot be read, or holds calls that the library does not have
  kRunHung = 10,
  kRunWrongData = 11,
};

}  // namespace lockstep::testing
