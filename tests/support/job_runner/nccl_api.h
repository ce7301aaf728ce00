// NCCL's calls as declarations, from the table, and the few of the CUDA runtime that job_runner makes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nccl/api.h"

namespace lockstep::nccl {

using std::size_t;
using std::uint64_t;
using std::uint8_t;
using std::uint16_t;
using std::uint32_t;
using std::int8_t;
using std::int16_t;
using std::int32_t;
using std::int64_t;

extern "C" {
#define NCCL_PLAIN(since, Result, Name, params, args, reason) Result nccl##Name params;
#define NCCL_CALL(since, Name, params, args, ...) NCCL_PLAIN(since, ncclResult_t, Name, params, args, "")
#include "nccl/functions.def"
#undef NCCL_CALL
#undef NCCL_PLAIN

int cudaSetDevice(int device);
int cudaGetDeviceCount(int* count);
int cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
int cudaStreamSynchronize(cudaStream_t stream);
int cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
int cudaDeviceSynchronize();
int cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
int cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
int cudaEventSynchronize(cudaEvent_t event);
int cudaEventDestroy(cudaEvent_t event);
int cudaStreamBeginCapture(cudaStream_t stream, int mode);
int cudaStreamEndCapture(cudaStream_t stream, void** graph);
int cudaGraphInstantiateWithFlags(void** instance, void* graph, unsigned long long flags);
int cudaGraphLaunch(void* instance, cudaStream_t stream);
int cudaMalloc(void** pointer, size_t bytes);
int cudaMemcpy(void* to, const void* from, size_t bytes, int kind);
int cudaMemset(void* to, int value, size_t bytes);
int cudaFree(void* pointer);
}

}  // namespace lockstep::nccl
