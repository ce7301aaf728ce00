// The interposed names of torch's C++: virtual functions of its backends and of Work, whose places in the vtables the loader fills by name. They
// are declared here as plain functions with the object as first parameter, which is how the C++ ABI of Linux passes it.
#include "torch/groups.h"
#include "torch/original.h"
#include "torch/recording.h"

using namespace lockstep;
using namespace lockstep::shim;
using namespace lockstep::shim::torch;

// A function of ours runs only where a library defines the same name: there is always an original.
#define TORCH_NAMED(tail) "_ZN4c10d" TORCH_CLASS_NAME tail
#define TORCH_JOIN_(a, b) a##b
#define TORCH_JOIN(a, b) TORCH_JOIN_(a, b)
#define TORCH_FUNCTION(Name) TORCH_JOIN(TORCH_CLASS, Name)
#define TORCH_WORK(Name, tail, params, args, ...)                                                                       \
  extern "C" [[gnu::visibility("default")]] WorkPointer TORCH_FUNCTION(Name) params __asm__(TORCH_NAMED(tail));         \
  extern "C" WorkPointer TORCH_FUNCTION(Name) params {                                                                  \
    LOCKSTEP_TELL_WHEN_LEFT();                                                                                          \
    static constinit std::atomic<void*> place{nullptr};                                                                 \
    const auto real = original<WorkPointer(*) params>(place, TORCH_NAMED(tail));                                        \
    BackendCall call(__builtin_frame_address(0), __builtin_return_address(0), self);                                    \
    if (call.active()) call.__VA_ARGS__;                                                                                \
    WorkPointer result = real args; /* one return only, so that it is made where the caller wants it */                 \
    call.finish(result.work);                                                                                           \
    return result;                                                                                                      \
  }
#define TORCH_MONITORED_BARRIER(tail)                                                                                   \
  extern "C" [[gnu::visibility("default")]] void TORCH_FUNCTION(MonitoredBarrier)(const void*, const void*, bool)       \
      __asm__(TORCH_NAMED(tail));                                                                                       \
  extern "C" void TORCH_FUNCTION(MonitoredBarrier)(const void* self, const void* options, bool all_ranks) {             \
    LOCKSTEP_TELL_WHEN_LEFT();                                                                                          \
    static constinit std::atomic<void*> place{nullptr};                                                                 \
    const auto real = original<void (*)(const void*, const void*, bool)>(place, TORCH_NAMED(tail));                     \
    BackendCall call(__builtin_frame_address(0), __builtin_return_address(0), self);                                    \
    if (call.active()) call.monitored_barrier();                                                                        \
    real(self, options, all_ranks);                                                                                     \
    call.finish(nullptr);                                                                                               \
  }
#define TORCH_MONITORED_BARRIER_TAIL "16monitoredBarrierERKNS_14BarrierOptionsEb"

#define TORCH_CLASS_NAME "16ProcessGroupGloo"
#define TORCH_CLASS torch_gloo_
#include "torch/functions.def"
TORCH_MONITORED_BARRIER(TORCH_MONITORED_BARRIER_TAIL)
#undef TORCH_CLASS_NAME
#undef TORCH_CLASS

#define TORCH_CLASS_NAME "15ProcessGroupUCC"
#define TORCH_CLASS torch_ucc_
#include "torch/functions.def"
#undef TORCH_CLASS_NAME
#undef TORCH_CLASS

// Stands before another backend where TORCH_DISTRIBUTED_DEBUG=DETAIL asks for it, and makes calls of its own to compare the arguments.
#define TORCH_CLASS_NAME "19ProcessGroupWrapper"
#define TORCH_CLASS torch_wrapper_
#include "torch/functions.def"
TORCH_MONITORED_BARRIER(TORCH_MONITORED_BARRIER_TAIL)
#undef TORCH_CLASS_NAME
#undef TORCH_CLASS

// The timeout is passed by value, in milliseconds.
#define TORCH_WAIT(Name, mangled)                                                                                       \
  extern "C" [[gnu::visibility("default")]] bool torch_wait_##Name(const void*, std::int64_t) __asm__(mangled);         \
  extern "C" bool torch_wait_##Name(const void* self, std::int64_t timeout_ms) {                                        \
    LOCKSTEP_TELL_WHEN_LEFT();                                                                                          \
    static constinit std::atomic<void*> place{nullptr};                                                                 \
    const auto real = original<bool (*)(const void*, std::int64_t)>(place, mangled);                                    \
    if (t_torch.is_worker) return real(self, timeout_ms);                                                               \
    WaitCall call(__builtin_frame_address(0), __builtin_return_address(0));                                             \
    call.wait_for(self);                                                                                                \
    const bool result = real(self, timeout_ms);                                                                         \
    call.finish();                                                                                                      \
    return result;                                                                                                      \
  }
TORCH_WAIT(work, "_ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE")
TORCH_WAIT(gloo_send, "_ZN4c10d16ProcessGroupGloo8SendWork4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE")
TORCH_WAIT(gloo_recv, "_ZN4c10d16ProcessGroupGloo8RecvWork4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE")

// A new backend may stand where an old one stood.
#define TORCH_GLOO_CONSTRUCTOR \
  "_ZN4c10d16ProcessGroupGlooC1ERKN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEEiiNS2_INS0_7OptionsENS5_ISA_EEEE"
extern "C" [[gnu::visibility("default")]] void torch_gloo_construct(void*, const void*, int, int, void*) __asm__(TORCH_GLOO_CONSTRUCTOR);
extern "C" void torch_gloo_construct(void* self, const void* store, int rank, int size, void* options) {
  static constinit std::atomic<void*> place{nullptr};
  const auto real = original<void (*)(void*, const void*, int, int, void*)>(place, TORCH_GLOO_CONSTRUCTOR);
  note_new_backend(self);
  real(self, store, rank, size, options);
}

// Threads of a backend do what was issued; calls and waits that they make are no calls of the program.
extern "C" [[gnu::visibility("default")]] void torch_gloo_worker(void*, int) __asm__("_ZN4c10d16ProcessGroupGloo7runLoopEi");
extern "C" void torch_gloo_worker(void* self, int index) {
  static constinit std::atomic<void*> place{nullptr};
  const auto real = original<void (*)(void*, int)>(place, "_ZN4c10d16ProcessGroupGloo7runLoopEi");
  t_torch.is_worker = true;
  real(self, index);
}
