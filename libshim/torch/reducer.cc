// See the header. The reducer's own functions call each other through the loader, so they are stood before by name.
#include "torch/reducer.h"

#include "text.h"
#include "torch/original.h"
#include "torch/recording.h"

namespace lockstep::shim::torch {
namespace {

// Requests of one backward pass of one reducer.
struct Pass {
  const void* reducer = nullptr;
  std::uint32_t buckets = 0;
  std::uint32_t of_buckets = 0;  ///< that the reducer has now; 0 = not known
  std::uint32_t requests = 0;    ///< may be more than fit
  std::uint32_t ids[kMostWaited] = {};
};
constexpr std::uint32_t kPasses = 128;
constinit Pass g_passes[kPasses] = {};
constinit SpinLock g_lock;

/// Under the lock. Null: too many reducers.
Pass* pass_of(const void* reducer) noexcept {
  std::uint64_t at = spread(reinterpret_cast<std::uint64_t>(reducer));
  for (std::uint32_t tries = 0; tries < 16; ++tries, ++at) {
    Pass& pass = g_passes[at % kPasses];
    if (pass.reducer == nullptr) pass.reducer = reducer;
    if (pass.reducer == reducer) return &pass;
  }
  return nullptr;
}

struct Bucket {
  std::uint32_t number = 0;  ///< from 1; 0 = not known
  std::uint32_t of = 0;
};

Bucket next_bucket(const void* reducer) noexcept {
  const SpinGuard guard(g_lock);
  Pass* pass = pass_of(reducer);
  return pass != nullptr ? Bucket{++pass->buckets, pass->of_buckets} : Bucket{};
}

// A reducer that is made, also where an old one was, or makes its buckets anew.
void begin_buckets(const void* reducer, std::uint32_t buckets) noexcept {
  const SpinGuard guard(g_lock);
  Pass* pass = pass_of(reducer);
  if (pass != nullptr) *pass = Pass{.reducer = reducer, .of_buckets = buckets};
}

/// Elements of a std::vector of vectors, which is three pointers; 0 where it does not look like one.
std::uint32_t vectors_in(const void* vector) noexcept {
  constexpr std::uintptr_t kEach = 3 * sizeof(void*), kMost = 1 << 16;
  const auto* ends = static_cast<const std::uintptr_t*>(vector);
  const std::uintptr_t bytes = ends[1] - ends[0];
  return ends[0] != 0 && ends[1] >= ends[0] && bytes % kEach == 0 && bytes / kEach <= kMost ? static_cast<std::uint32_t>(bytes / kEach) : 0;
}

/// What was issued since the last time.
Pass take_pass(const void* reducer) noexcept {
  const SpinGuard guard(g_lock);
  Pass* pass = pass_of(reducer);
  if (pass == nullptr) return Pass{};
  const Pass taken = *pass;
  pass->buckets = 0;
  pass->requests = 0;
  return taken;
}

/// While it lives, calls of this thread are the reducer's.
class Context {
 public:
  Context(const char* native, const void* reducer) noexcept : native_(t_torch.native), reducer_(t_torch.reducer) {
    t_torch.native = native;
    t_torch.reducer = reducer;
  }
  void end() noexcept {
    t_torch.native = native_;
    t_torch.reducer = reducer_;
  }

 private:
  const char* native_;
  const void* reducer_;
};

}  // namespace

void add_reducer_request(const void* reducer, std::uint32_t request) noexcept {
  const SpinGuard guard(g_lock);
  Pass* pass = pass_of(reducer);
  if (pass == nullptr) return;
  if (pass->requests < kMostWaited) pass->ids[pass->requests] = request;
  ++pass->requests;
}

void reset_reducers() noexcept {
  g_lock.unlock();
  for (Pass& pass : g_passes) pass = Pass{};
}

}  // namespace lockstep::shim::torch

using namespace lockstep::shim;
using namespace lockstep::shim::torch;

#define TORCH_REDUCER(Name, params, mangled)                                                          \
  extern "C" [[gnu::visibility("default")]] void torch_reducer_##Name params __asm__(mangled);        \
  static constexpr const char* kName_##Name = mangled;                                                \
  extern "C" void torch_reducer_##Name params
#define TORCH_REAL(Name, params)                             \
  LOCKSTEP_TELL_WHEN_LEFT();                                 \
  static constinit std::atomic<void*> place{nullptr};        \
  const auto real = original<void(*) params>(place, kName_##Name)

TORCH_REDUCER(all_reduce_bucket, (void* self, void* bucket), "_ZN4c10d7Reducer17all_reduce_bucketERNS0_6BucketE") {
  TORCH_REAL(all_reduce_bucket, (void*, void*));
  char name[64];
  const Bucket bucket_now = next_bucket(self);
  Text text(name);
  text.add("DistributedDataParallel bucket ").add_number(bucket_now.number);
  if (bucket_now.of >= bucket_now.number && bucket_now.number != 0) text.add(" of ").add_number(bucket_now.of);
  Context context(name, self);
  real(self, bucket);
  context.end();
}

// The argument, which is passed by value, is a temporary of the caller, as far as the ABI is concerned.
TORCH_REDUCER(initialize_buckets, (void* self, void* buckets), "_ZN4c10d7Reducer18initialize_bucketsESt6vectorIS1_ImSaImEESaIS3_EE") {
  TORCH_REAL(initialize_buckets, (void*, void*));
  begin_buckets(self, vectors_in(buckets));
  real(self, buckets);
}

TORCH_REDUCER(local_used_map, (void* self), "_ZN4c10d7Reducer25all_reduce_local_used_mapEv") {
  TORCH_REAL(local_used_map, (void*));
  Context context("DistributedDataParallel unused-parameter map", self);
  real(self);
  context.end();
}

// A vector passed by value again.
TORCH_REDUCER(sync_buckets, (void* self, void* sizes), "_ZN4c10d7Reducer19sync_bucket_indicesERSt6vectorIS1_ImSaImEESaIS3_EE") {
  TORCH_REAL(sync_buckets, (void*, void*));
  Context context("DistributedDataParallel bucket order (rebuild)", nullptr);
  real(self, sizes);
  context.end();
}

TORCH_REDUCER(prepare, (void* self, const void* outputs), "_ZN4c10d7Reducer20prepare_for_backwardERKSt6vectorIN2at6TensorESaIS3_EE") {
  TORCH_REAL(prepare, (void*, const void*));
  take_pass(self);
  real(self, outputs);
}

TORCH_REDUCER(finalize, (void* self), "_ZN4c10d7Reducer17finalize_backwardEv") {
  TORCH_REAL(finalize, (void*));
  const Pass pass = take_pass(self);
  if (pass.requests == 0) return real(self);
  Context context("DistributedDataParallel finalize", nullptr);
  WaitCall call(__builtin_frame_address(0), __builtin_return_address(0));
  call.wait_for(pass.ids, pass.requests);
  real(self);
  call.finish();
  context.end();
}
