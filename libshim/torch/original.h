// The function of torch's C++ behind an interposed one; found at its first call.
#pragma once

#include <atomic>

#include "../original.h"

namespace lockstep::shim::torch {

inline constexpr const char* kTorchLibraries[] = {"libtorch_cpu.", "libtorch_cpu-", "libtorch.", nullptr};

/// Null where no loaded library has it.
template <class Pointer>
inline Pointer original(std::atomic<void*>& place, const char* name) noexcept {
  void* found = place.load(std::memory_order_relaxed);
  if (__builtin_expect(found == nullptr, 0)) {
    found = find_original(name, kTorchLibraries);
    place.store(found, std::memory_order_relaxed);
  }
  return reinterpret_cast<Pointer>(found);
}

}  // namespace lockstep::shim::torch
