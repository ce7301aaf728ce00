// See the header.
#include "nccl/dispatch.h"

#include "original.h"
#include "text.h"

namespace lockstep::shim::nccl {

constinit std::atomic<void*> g_original[kFunctions] = {};

namespace {

const char* const kNames[] = {
#define NCCL_CALL(since, Name, params, args, ...) "nccl" #Name,
#define NCCL_PLAIN(since, Result, Name, params, args, reason) "nccl" #Name,
#include "nccl/functions.def"
#undef NCCL_CALL
#undef NCCL_PLAIN
};

// NVIDIA's and AMD's; both export the same names.
const char* const kLibraries[] = {"libnccl.", "libnccl-", "librccl.", nullptr};

}  // namespace

// What comes next in the host's order goes first, so that another tool between the host and NCCL keeps its place; a library that came
// by dlopen(RTLD_LOCAL), Python's way, is not in that order.
void* resolve(Function function) noexcept {
  const auto index = static_cast<std::uint32_t>(function);
  void* found = find_original(kNames[index], kLibraries);
  if (found != nullptr) g_original[index].store(found, std::memory_order_relaxed);
  return found;
}

}  // namespace lockstep::shim::nccl
