// The names of libnccl.so.2: a strong pncclX and a weak ncclX for every row of the table, as the real library has them.
#include "nccl/calls.h"
#include "nccl/group.h"

namespace lockstep::standin {
namespace {

template <class R>
R refuse_call(const char* name) {
  return static_cast<R>(refuse(fail(ncclInvalidUsage, std::string("the stand-in cannot do ") + name)));
}
template <>
[[maybe_unused]] void refuse_call<void>(const char*) {}
template <>
[[maybe_unused]] const char* refuse_call<const char*>(const char* name) {
  return name;
}

}  // namespace

// A name that is not offered means the one of this namespace around it, which refuses.
#define NCCL_PLAIN(since, Result, Name, params, args, reason) \
  [[maybe_unused]] static Result Name params { return refuse_call<Result>("nccl" #Name); }
#define NCCL_CALL(since, Name, params, args, ...) NCCL_PLAIN(since, ncclResult_t, Name, params, args, "")
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "nccl/functions.def"
#pragma GCC diagnostic pop
#undef NCCL_PLAIN

namespace offered {

#define NCCL_PLAIN(since, Result, Name, params, args, reason)                                           \
  extern "C" __attribute__((visibility("default"))) Result pnccl##Name params { return Name args; }     \
  extern "C" __attribute__((visibility("default"), weak, alias("pnccl" #Name))) Result nccl##Name params;
#include "nccl/functions.def"
#undef NCCL_PLAIN
#undef NCCL_CALL

// The real one calls the exported name, so that what stands before it sees both.
ncclResult_t Bcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

}  // namespace offered
}  // namespace lockstep::standin
