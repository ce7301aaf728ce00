// Calls that concern one rank only.
#include <algorithm>
#include <cstring>

#include "nccl/calls.h"
#include "nccl/config.h"
#include "nccl/group.h"
#include "nccl/reduce.h"

namespace lockstep::standin::offered {
namespace {

ncclResult_t invalid(const char* what, ncclComm_t comm = nullptr) { return refuse(fail(ncclInvalidArgument, what, comm)); }

}  // namespace

ncclResult_t GetVersion(int* version) {
  if (version == nullptr) return invalid("no place for the version");
  *version = config().version;
  return ncclSuccess;
}

ncclResult_t GetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return invalid("no place for the unique id");
  return make_unique_id(*id) ? ncclSuccess : refuse(fail(ncclSystemError, "no memory file could be made"));
}

ncclResult_t CommGetUniqueId(ncclComm_t comm, ncclUniqueId* id) {
  if (const ncclResult_t result = check_communicator(comm); result != ncclSuccess) return refuse(result);
  return GetUniqueId(id);
}

/// In the words of the real library, which programs print.
const char* GetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    case ncclTimeout:
      break;
  }
  return "unknown result code";
}

const char* GetLastError(ncclComm_t) { return last_error(); }
void ResetDebugInit() {}

ncclResult_t CommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  if (find_communicator(comm) == nullptr) return invalid("no such communicator");
  if (error == nullptr) return invalid("no place for the error", comm);
  *error = static_cast<ncclResult_t>(comm->state.load());
  return ncclSuccess;
}

ncclResult_t CommCount(ncclComm_t comm, int* count) {
  if (const ncclResult_t result = check_communicator(comm); result != ncclSuccess) return refuse(result);
  if (count == nullptr) return invalid("no place for the count", comm);
  *count = comm->ranks;
  return ncclSuccess;
}

ncclResult_t CommCuDevice(ncclComm_t comm, int* device) {
  if (const ncclResult_t result = check_communicator(comm); result != ncclSuccess) return refuse(result);
  if (device == nullptr) return invalid("no place for the device", comm);
  *device = comm->device;
  return ncclSuccess;
}

ncclResult_t CommUserRank(ncclComm_t comm, int* rank) {
  if (const ncclResult_t result = check_communicator(comm); result != ncclSuccess) return refuse(result);
  if (rank == nullptr) return invalid("no place for the rank", comm);
  *rank = comm->rank;
  return ncclSuccess;
}

ncclResult_t CommMemStats(ncclComm_t comm, ncclCommMemStat_t, uint64_t* value) {
  if (const ncclResult_t result = check_communicator(comm); result != ncclSuccess) return refuse(result);
  if (value == nullptr) return invalid("no place for the value", comm);
  *value = 0;
  return ncclSuccess;
}

ncclResult_t MemAlloc(void** pointer, size_t size) {
  if (pointer == nullptr) return invalid("no place for the address");
  *pointer = cuda().allocate(size);
  return *pointer != nullptr || size == 0 ? ncclSuccess : refuse(fail(ncclUnhandledCudaError, "out of memory"));
}

ncclResult_t MemFree(void* pointer) {
  cuda().release(pointer);
  return ncclSuccess;
}

ncclResult_t CommRegister(ncclComm_t comm, void* buffer, size_t, void** handle) {
  if (const ncclResult_t result = check_communicator(comm); result != ncclSuccess) return refuse(result);
  if (handle == nullptr) return invalid("no place for the handle", comm);
  *handle = buffer;
  return ncclSuccess;
}

ncclResult_t CommDeregister(ncclComm_t comm, void*) { return refuse(check_communicator(comm)); }
ncclResult_t CommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  if (const ncclResult_t result = check_communicator(comm); result != ncclSuccess) return refuse(result);
  const auto* memory = reinterpret_cast<const std::byte*>(window);  // NOLINT
  const auto found = std::ranges::find(comm->windows, memory, &ncclComm::Window::memory);
  if (found != comm->windows.end()) *found = {};  // the others keep their places
  return ncclSuccess;
}

ncclResult_t WinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void** pointer) {
  if (const ncclResult_t result = check_communicator(comm); result != ncclSuccess) return refuse(result);
  if (pointer == nullptr) return invalid("no place for the address", comm);
  *pointer = window;
  return ncclSuccess;
}

/// The number means something on this rank only, and differs between ranks as the real one's does.
ncclResult_t RedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t, ncclComm_t comm) {
  if (const ncclResult_t result = check_communicator(comm); result != ncclSuccess) return refuse(result);
  const std::size_t bytes = datatype_bytes(type);
  if (op == nullptr || scalar == nullptr || bytes == 0) return invalid("no scalar, or no such datatype", comm);
  comm->scalars.emplace_back(bytes);
  std::memcpy(comm->scalars.back().data(), scalar, bytes);
  comm->scalar_types.push_back(type);
  *op = static_cast<ncclRedOp_t>(kFirstUserRedop + static_cast<int>(comm->scalars.size()) - 1);
  return ncclSuccess;
}

ncclResult_t RedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  if (const ncclResult_t result = check_communicator(comm); result != ncclSuccess) return refuse(result);
  const auto index = static_cast<std::size_t>(op - kFirstUserRedop);
  if (op < kFirstUserRedop) return invalid("a reduction of the library cannot be destroyed", comm);
  if (index >= comm->scalar_types.size() || comm->scalar_types[index] < 0) return invalid("no such reduction", comm);
  comm->scalar_types[index] = -1;
  return ncclSuccess;
}

}  // namespace lockstep::standin::offered
