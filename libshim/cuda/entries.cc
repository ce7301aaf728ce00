// The interposed names of the CUDA runtime and driver. The libraries' own functions are found at the first call of each; neither library
// is needed, and a process that never calls them is not touched.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cuda/waiting.h"
#include "original.h"

namespace lockstep::shim::cuda {
namespace {

enum class Function : std::uint32_t {
#define CUDA_CALL(name, params, args, what) k_##name,
#include "cuda/functions.def"
#undef CUDA_CALL
  kCount
};
constinit std::atomic<void*> g_original[static_cast<std::uint32_t>(Function::kCount)] = {};

const char* const kNames[] = {
#define CUDA_CALL(name, params, args, what) #name,
#include "cuda/functions.def"
#undef CUDA_CALL
};
const char* const kRuntimes[] = {"libcudart.", "libcudart-", nullptr};
const char* const kDrivers[] = {"libcuda.", nullptr};

void* resolve(Function function) noexcept {
  const auto index = static_cast<std::uint32_t>(function);
  const char* name = kNames[index];
  const bool is_runtime = name[2] == 'd' && name[3] == 'a';
  void* found = find_original(name, is_runtime ? kRuntimes : kDrivers);
  if (found != nullptr) g_original[index].store(found, std::memory_order_relaxed);
  return found;
}

template <class Pointer>
Pointer original(Function function) noexcept {
  void* found = g_original[static_cast<std::uint32_t>(function)].load(std::memory_order_relaxed);
  if (__builtin_expect(found == nullptr, 0)) found = resolve(function);
  return reinterpret_cast<Pointer>(found);
}

constexpr int kUnknownError = 999;  // cudaErrorUnknown, CUDA_ERROR_UNKNOWN

}  // namespace
}  // namespace lockstep::shim::cuda

using namespace lockstep::shim::cuda;

#define CUDA_CALL(name, params, args, what)                                                  \
  extern "C" [[gnu::visibility("default")]] int name params {                                \
    const auto real = original<int(*) params>(Function::k_##name);                           \
    if (__builtin_expect(real == nullptr, 0)) return kUnknownError;                          \
    Waiting waiting(__builtin_frame_address(0), __builtin_return_address(0));                \
    waiting.what;                                                                            \
    const int result = real args;                                                            \
    waiting.finish(result);                                                                  \
    return result;                                                                           \
  }
#include "cuda/functions.def"
#undef CUDA_CALL
