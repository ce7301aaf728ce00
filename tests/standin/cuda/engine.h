// Streams of the stand-in for the CUDA runtime: a queue and a worker each, and the waits of all threads on them.
//
// One lock guards all of it. What streams run is run without the lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/types.h"
#include "hooks.h"

namespace lockstep::standin {

struct Capture;

struct Item {
  std::shared_ptr<Work> work;      ///< null: only a point to wait for
  std::vector<Position> after{};
};

/// Never freed: positions point to it.
struct Stream {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t id = 0;
  bool is_null = false;
  bool destroyed = false;
  bool has_worker = false;
  std::deque<Item> queue{};
  std::uint64_t issued = 0;  ///< items ever issued, and
  std::uint64_t done = 0;    ///< done
  std::vector<Position> pending{};  ///< what the next item must wait for: events and the other kind of stream
  Capture* capture = nullptr;
  std::condition_variable ready{};
};

struct Event {
  Position at{};
  bool recorded = false;
  bool timed = true;
  unsigned long long capture_id = 0;
  std::shared_ptr<std::uint64_t> stamp_ns{};  ///< of the last record; 0: not passed yet
};

/// A capture under way, and later the graph: its work in the order of issue.
struct Capture {
  unsigned long long id = 0;
  Stream* origin = nullptr;
  std::vector<Stream*> streams{};
  std::vector<std::shared_ptr<Work>> nodes{};
  bool invalidated = false;
};

struct Engine {
  std::mutex mutex{};
  std::condition_variable changed{};
  std::vector<Stream*> streams{};
  std::map<int, Stream*> null_streams{};
  std::size_t busy_streams = 0;  ///< with something in their queue
  unsigned long long captures = 0;

  std::uint64_t progress = 0;
  Wait* waits = nullptr;
  std::size_t host_waits = 0;
  std::size_t worker_waits = 0;
  int hosts = 0;
  int hosts_ended = 0;
  bool watched = false;
};

Engine& engine();

using Lock = std::unique_lock<std::mutex>;

Stream* new_stream(Lock& held, int device, unsigned flags, int priority);
/// The stream of a handle, its two null forms resolved; null: destroyed or never made.
Stream* find_stream(Lock& held, cudaStream_t handle);
Position issue(Lock& held, Stream& stream, std::shared_ptr<Work> work, std::vector<Position> after = {});
bool passed(const Position& position);
/// Waits on the calling thread until all `positions` are passed.
void wait_for(Lock& held, const std::vector<Position>& positions, bool host);
Position tail_of(const Stream& stream);

int current_device();
void set_current_device(int device);
int device_count();

/// A std::function-like piece of work.
template <class F>
std::shared_ptr<Work> make_work(F function) {
  auto* owned = new F(std::move(function));
  return {new Work{[](void* f) { (*static_cast<F*>(f))(); }, [](void* f) { delete static_cast<F*>(f); }, owned},
          [](Work* work) {
            if (work->drop != nullptr) work->drop(work->argument);
            delete work;
          }};
}

// waits.cc
void begin_wait(Lock& held, Wait& wait);
void end_wait(Lock& held, Wait& wait);
bool is_stuck(Lock& held);

}  // namespace lockstep::standin
