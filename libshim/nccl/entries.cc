// The interposed names: one function per row of functions.def. The structs and numbers they take are read only as far as recording.h says,
// and passed on as they came.
#include "nccl/dispatch.h"
#include "nccl/recording.h"

using namespace lockstep::shim;
using namespace lockstep::shim::nccl;
using lockstep::OpKind;
using std::size_t;
using std::uint64_t;

// Where the loaded library is too old for a function, its caller would not have found it; we can only refuse.
#define NCCL_CALL(since, Name, params, args, ...)                                        \
  extern "C" [[gnu::visibility("default")]] ncclResult_t nccl##Name params {             \
    const auto real = original<ncclResult_t(*) params>(Function::k##Name);               \
    if (__builtin_expect(real == nullptr, 0)) return ncclInvalidUsage;                   \
    CallScope scope(__builtin_frame_address(0), __builtin_return_address(0));            \
    if (!scope.active()) return real args;                                               \
    Recording recording(scope);                                                          \
    recording.__VA_ARGS__;                                                               \
    const ncclResult_t result = real args;                                               \
    recording.finish(result);                                                            \
    return result;                                                                       \
  }
#define NCCL_PLAIN(since, Result, Name, params, args, reason)
#include "nccl/functions.def"
#undef NCCL_CALL
#undef NCCL_PLAIN
