// Stands for cuda_runtime.h where there is none, as far as the programs of this folder need it.
#pragma once

#include "nccl_api.h"

using cudaError_t = int;
using cudaStream_t = CUstream_st*;
enum { cudaSuccess = 0, cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
extern "C" const char* cudaGetErrorString(cudaError_t error);
extern "C" int cudaStreamCreate(CUstream_st** stream);
extern "C" int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, CUstream_st* stream);
