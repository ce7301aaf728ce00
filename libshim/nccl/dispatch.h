// NCCL's own functions behind the interposed ones: found at the first call of each.
#pragma once

#include <atomic>
#include <cstdint>

#include "nccl/api.h"

namespace lockstep::shim::nccl {

enum class Function : std::uint32_t {
#define NCCL_CALL(since, Name, params, args, ...) k##Name,
#define NCCL_PLAIN(since, Result, Name, params, args, reason) k##Name,
#include "nccl/functions.def"
#undef NCCL_CALL
#undef NCCL_PLAIN
  kCount
};
inline constexpr std::uint32_t kFunctions = static_cast<std::uint32_t>(Function::kCount);

extern constinit std::atomic<void*> g_original[kFunctions];

/// Null where no loaded library has it; asked again the next time, for one may come by dlopen. Keeps errno. Cold.
void* resolve(Function function) noexcept;

template <class Pointer>
inline Pointer original(Function function) noexcept {
  void* found = g_original[static_cast<std::uint32_t>(function)].load(std::memory_order_relaxed);
  if (__builtin_expect(found == nullptr, 0)) found = resolve(function);
  return reinterpret_cast<Pointer>(found);
}

}  // namespace lockstep::shim::nccl
