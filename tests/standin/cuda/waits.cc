// Who waits: the list that the watchdog ends a hung process by, and that shows exactly when nothing can move any more.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "cuda/engine.h"
#include "settings.h"

namespace lockstep::standin {
namespace {

constexpr int kExitTimedOut = 124;  // as timeout(1)

std::string what_waits() {
  std::string on_device;
  for (const Wait* wait = engine().waits; wait != nullptr; wait = wait->next) {
    if (wait->describe == nullptr) continue;
    char text[256] = "";
    wait->describe(wait->argument, text, sizeof text);
    on_device += (on_device.empty() ? "" : "; ") + std::string(text);
  }
  return on_device.empty() ? "host waits for a stream or an event" : on_device;
}

void watch() {
  using Clock = std::chrono::steady_clock;
  const auto patience = std::chrono::duration<double>(timeout_s());
  const auto pause = std::min(std::chrono::duration<double>(0.25), patience / 8);
  std::uint64_t seen = 0;
  auto since = Clock::now();
  while (true) {
    std::this_thread::sleep_for(pause);
    Lock lock(engine().mutex);
    if (engine().progress != seen || engine().waits == nullptr) {
      seen = engine().progress;
      since = Clock::now();
      continue;
    }
    if (Clock::now() - since < patience) continue;
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%g", patience.count());
    const std::string line = "lockstep rehearse: process " + std::to_string(getpid()) + " stood still for " + seconds +
                             " s and is ended: " + what_waits() + "\n";
    std::fflush(stdout);
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) _exit(kExitTimedOut);
    _exit(kExitTimedOut);
  }
}

}  // namespace

void begin_wait(Lock&, Wait& wait) {
  Engine& all = engine();
  wait.previous = nullptr;
  wait.next = all.waits;
  if (all.waits != nullptr) all.waits->previous = &wait;
  all.waits = &wait;
  if (wait.counted) ++(wait.host ? all.host_waits : all.worker_waits);
  all.changed.notify_all();  // settle() looks whether this was the last that moved
  if (!all.watched) {
    all.watched = true;
    std::thread(watch).detach();
  }
}

void end_wait(Lock&, Wait& wait) {
  Engine& all = engine();
  if (wait.next != nullptr) wait.next->previous = wait.previous;
  (wait.previous == nullptr ? all.waits : wait.previous->next) = wait.next;
  if (wait.counted) --(wait.host ? all.host_waits : all.worker_waits);
  ++all.progress;
}

bool is_stuck(Lock&) {
  Engine& all = engine();
  const auto hosts = static_cast<std::size_t>(all.hosts - all.hosts_ended);
  if (all.host_waits < hosts || all.worker_waits < all.busy_streams) return false;
  for (const Wait* wait = all.waits; wait != nullptr; wait = wait->next)
    if (wait->ready(wait->argument)) return false;
  return true;
}

}  // namespace lockstep::standin

extern "C" cudaError_t cudaMalloc(void** out, std::size_t bytes);
extern "C" cudaError_t cudaFree(void* pointer);

namespace {

using namespace lockstep::standin;

const void* hook_stream(CUstream_st* handle) {
  Lock lock(engine().mutex);
  return find_stream(lock, handle);
}

Position hook_tail(CUstream_st* handle) {
  Lock lock(engine().mutex);
  const Stream* stream = find_stream(lock, handle);
  return stream == nullptr ? Position{} : tail_of(*stream);
}

unsigned long long hook_capture_id(CUstream_st* handle) {
  Lock lock(engine().mutex);
  const Stream* stream = find_stream(lock, handle);
  return stream == nullptr || stream->capture == nullptr ? 0 : stream->capture->id;
}

Position hook_enqueue(CUstream_st* handle, const Work& work, const Position* after, std::size_t after_count) {
  std::shared_ptr<Work> owned;
  if (work.run != nullptr)
    owned = {new Work(work), [](Work* given) {
               if (given->drop != nullptr) given->drop(given->argument);
               delete given;
             }};
  Lock lock(engine().mutex);
  Stream* stream = find_stream(lock, handle);
  if (stream == nullptr) return {};
  return issue(lock, *stream, std::move(owned), {after, after + after_count});
}

void* hook_allocate(std::size_t bytes) {
  void* memory = nullptr;
  return cudaMalloc(&memory, bytes) == kCudaSuccess ? memory : nullptr;
}

void hook_release(void* pointer) { cudaFree(pointer); }

void hook_wait_begin(Wait* wait) {
  Lock lock(engine().mutex);
  begin_wait(lock, *wait);
}

void hook_wait_end(Wait* wait) {
  Lock lock(engine().mutex);
  end_wait(lock, *wait);
}

void hook_progress() {
  Lock lock(engine().mutex);
  ++engine().progress;
}

void hook_expect_hosts(int hosts) {
  Lock lock(engine().mutex);
  engine().hosts = hosts;
  engine().hosts_ended = 0;
}

void hook_host_ended() {
  Lock lock(engine().mutex);
  ++engine().hosts_ended;
  engine().changed.notify_all();
}

Settled hook_settle(int timeout_ms) {
  Lock lock(engine().mutex);
  Settled outcome = Settled::kTimedOut;
  engine().changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] {
    if (engine().hosts_ended >= engine().hosts && engine().busy_streams == 0) {
      outcome = Settled::kEnded;
      return true;
    }
    if (!is_stuck(lock)) return false;
    outcome = Settled::kStuck;
    return true;
  });
  return outcome;
}

}  // namespace

extern "C" const lockstep::standin::CudaHooks* lockstep_standin_cuda_hooks() {
  static const CudaHooks hooks{current_device, device_count,   hook_stream,   hook_tail, hook_capture_id, hook_enqueue, hook_allocate, hook_release,
                               hook_wait_begin, hook_wait_end, hook_progress, hook_expect_hosts, hook_host_ended, hook_settle};
  return &hooks;
}
