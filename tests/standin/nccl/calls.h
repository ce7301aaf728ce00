// What of NCCL the stand-in can do, by the name without "nccl". Calls of functions.def that are not here are refused.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nccl/api.h"

namespace lockstep::standin {

using namespace nccl;  // the types of functions.def
using std::size_t;

namespace offered {

ncclResult_t AllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t Reduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t Broadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t Bcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t AllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream);
ncclResult_t AlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream);
ncclResult_t Gather(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t Scatter(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t AllReduceConfig(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t*);
ncclResult_t ReduceConfig(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t*);
ncclResult_t ReduceScatterConfig(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t*);
ncclResult_t BroadcastConfig(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t*);
ncclResult_t AllGatherConfig(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t*);
ncclResult_t AlltoAllConfig(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t*);
ncclResult_t GatherConfig(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t*);
ncclResult_t ScatterConfig(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t*);
ncclResult_t Send(const void* buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);
ncclResult_t Recv(void* buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);
ncclResult_t PutSignal(const void* data, size_t count, ncclDataType_t type, int peer, ncclWindow_t window, size_t offset, int index, int context, unsigned flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t Signal(int peer, int index, int context, unsigned flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t WaitSignal(int count, ncclWaitSignalDesc_t* descriptors, ncclComm_t comm, cudaStream_t stream);

ncclResult_t GroupStart();
ncclResult_t GroupEnd();
ncclResult_t GroupSimulateEnd(ncclSimInfo_t* info);

ncclResult_t CommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank);
ncclResult_t CommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config);
ncclResult_t CommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int ids, ncclUniqueId* id, ncclConfig_t* config);
ncclResult_t CommInitAll(ncclComm_t* comms, int devices, const int* list);
ncclResult_t CommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config);
ncclResult_t CommShrink(ncclComm_t comm, int* excluded, int excluded_count, ncclComm_t* made, ncclConfig_t* config, int flags);
ncclResult_t CommGrow(ncclComm_t comm, int ranks, const ncclUniqueId* id, int rank, ncclComm_t* made, ncclConfig_t* config);
ncclResult_t CommWindowRegister(ncclComm_t comm, void* buffer, size_t size, ncclWindow_t* window, int flags);
ncclResult_t CommFinalize(ncclComm_t comm);
ncclResult_t CommDestroy(ncclComm_t comm);
ncclResult_t CommAbort(ncclComm_t comm);
ncclResult_t CommRevoke(ncclComm_t comm, int flags);
ncclResult_t CommSuspend(ncclComm_t comm, int flags);
ncclResult_t CommResume(ncclComm_t comm);

ncclResult_t RedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t RedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

ncclResult_t GetVersion(int* version);
ncclResult_t GetUniqueId(ncclUniqueId* id);
ncclResult_t CommGetUniqueId(ncclComm_t comm, ncclUniqueId* id);
const char* GetErrorString(ncclResult_t result);
const char* GetLastError(ncclComm_t comm);
void ResetDebugInit();
ncclResult_t CommGetAsyncError(ncclComm_t comm, ncclResult_t* error);
ncclResult_t CommCount(ncclComm_t comm, int* count);
ncclResult_t CommCuDevice(ncclComm_t comm, int* device);
ncclResult_t CommUserRank(ncclComm_t comm, int* rank);
ncclResult_t CommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value);
ncclResult_t MemAlloc(void** pointer, size_t size);
ncclResult_t MemFree(void* pointer);
ncclResult_t CommRegister(ncclComm_t comm, void* buffer, size_t size, void** handle);
ncclResult_t CommDeregister(ncclComm_t comm, void* handle);
ncclResult_t CommWindowDeregister(ncclComm_t comm, ncclWindow_t window);
ncclResult_t WinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void** pointer);

}  // namespace offered
}  // namespace lockstep::standin
