// A lock for the paths that make something (communicator, datatype, call site), never for a call that is
// recorded.
#pragma once

#include <atomic>

namespace lockstep::shim {

class SpinLock {
 public:
  void lock() noexcept {
    while (flag_.exchange(true, std::memory_order_acquire)) {
      while (flag_.load(std::memory_order_relaxed)) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
    }
  }
  void unlock() noexcept { flag_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> flag_{false};
};

class SpinGuard {
 public:
  explicit SpinGuard(SpinLock& lock) noexcept : lock_(lock) { lock_.lock(); }
  ~SpinGuard() { lock_.unlock(); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  SpinLock& lock_;
};

/// Spreads handles (aligned pointers, small integers) over a table of a power of two.
constexpr std::uint64_t spread(std::uint64_t handle) { return (handle * 0x9E37'79B9'7F4A'7C15ULL) >> 32; }

}  // namespace lockstep::shim
