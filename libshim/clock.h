// Time in the call path: the processor's constant-rate counter. Wall time only where an anchor is made.
#pragma once

#include <cstdint>
#include <ctime>

namespace lockstep::shim {

inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
#endif
}

/// 0 = the processor does not say.
inline std::uint64_t ticks_per_second() noexcept {
#if defined(__aarch64__)
  std::uint64_t value;
  __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(value));
  return value;
#elif defined(__x86_64__)
  return 0;
#else
  return 1'000'000'000U;
#endif
}

/// Nanoseconds since 1970. About 60 ns; in the vDSO, so no system call on usual hosts.
inline std::uint64_t unix_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

/// One instant on both clocks, as near to each other as one can get.
struct Anchor {
  std::uint64_t at_ticks = 0;
  std::uint64_t at_unix_ns = 0;
};
inline Anchor make_anchor() noexcept {
  const std::uint64_t before = ticks();
  const std::uint64_t wall = unix_ns();
  return {before + (ticks() - before) / 2, wall};
}

}  // namespace lockstep::shim
