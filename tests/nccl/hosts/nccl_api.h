// Declares NCCL's host functions for programs that are linked with a library and have no header: functions.def, as a header.
#pragma once

#include "nccl/api.h"

using namespace lockstep::nccl;
using std::size_t;
using std::uint64_t;
using namespace std;  // int8_t ... in the rows

extern "C" {
#define NCCL_CALL(since, Name, params, args, ...) [[gnu::weak]] ncclResult_t nccl##Name params;
#define NCCL_PLAIN(since, Result, Name, params, args, reason) [[gnu::weak]] Result nccl##Name params;
#include "nccl/functions.def"
#undef NCCL_CALL
#undef NCCL_PLAIN
}
