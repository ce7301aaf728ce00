// What the stand-in for NCCL uses of the stand-in for the CUDA runtime, beyond CUDA's own calls: both are built from this
// header at the same time, so it is no stable interface.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace lockstep::standin {

/// A point of a stream: passed once all that was issued to the stream up to it is done.
struct Position {
  const void* stream = nullptr;
  std::uint64_t number = 0;
};

/// A thread that waits, as the watchdog and the detection of standstill see it. Lives on the waiting thread's stack.
struct Wait {
  bool (*ready)(void* argument) = nullptr;  ///< would it go on? Called while nothing in this process moves
  void (*describe)(void* argument, char* text, std::size_t size) = nullptr;
  void* argument = nullptr;
  bool host = true;  ///< false: the worker of a stream
  bool counted = true;  ///< false: a helper of the library, which is neither: a host that waits for it counts as one that moves
  Wait* next = nullptr;
  Wait* previous = nullptr;
};

/// Work for a stream. A captured one is run once for each launch of its graph, and dropped with it.
struct Work {
  void (*run)(void* argument) = nullptr;
  void (*drop)(void* argument) = nullptr;  ///< frees the argument
  void* argument = nullptr;
};

enum class Settled : int { kEnded = 0, kStuck = 1, kTimedOut = 2 };

struct CudaHooks {
  int (*device)();
  int (*device_count)();
  /// Both streams' null forms are resolved for the calling thread and its current device. Null: no such stream.
  const void* (*stream)(CUstream_st* handle);
  Position (*tail)(CUstream_st* handle);
  /// 0 where the stream is not being captured, else the id of the capture.
  unsigned long long (*capture_id)(CUstream_st* handle);
  /// Runs `work` behind all that the stream has and behind `after`; in a capture, `after` is implied by the order of issue.
  Position (*enqueue)(CUstream_st* handle, const Work& work, const Position* after, std::size_t after_count);

  void* (*allocate)(std::size_t bytes);
  void (*release)(void* pointer);

  void (*wait_begin)(Wait* wait);
  void (*wait_end)(Wait* wait);
  void (*progress)();  ///< something moved: the watchdog starts anew

  /// For drivers that run all ranks as threads of one process: how many there are, that one has ended, and the wait until
  /// all have or none can move any more, which is known exactly.
  void (*expect_hosts)(int hosts);
  void (*host_ended)();
  Settled (*settle)(int timeout_ms);
};

}  // namespace lockstep::standin

extern "C" __attribute__((visibility("default"))) const lockstep::standin::CudaHooks* lockstep_standin_cuda_hooks();
