// The CUDA calls that test programs make, for machines without its headers.
#pragma once

#include "nccl/api.h"

extern "C" {
int cudaStreamSynchronize(lockstep::nccl::cudaStream_t);
int cudaEventRecord(lockstep::nccl::cudaEvent_t, lockstep::nccl::cudaStream_t);
int cudaEventSynchronize(lockstep::nccl::cudaEvent_t);
int cudaStreamWaitEvent(lockstep::nccl::cudaStream_t, lockstep::nccl::cudaEvent_t, unsigned);
}
