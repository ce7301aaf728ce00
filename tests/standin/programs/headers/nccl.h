// Stands for nccl.h where there is none: the declarations of the table, under the names that programs use.
#pragma once

#include "nccl_api.h"

using namespace lockstep::nccl;  // NOLINT
#define ncclFloat ncclFloat32
