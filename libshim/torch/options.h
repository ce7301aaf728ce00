// Where a field lies in the option structs of torch's C++ (they differ between versions): learned from torch itself, by setting the field from
// Python and looking which bytes changed. What could not be learned stays unknown.
#pragma once

#include <cstdint>

#include "torch/python_api.h"

namespace lockstep::shim::torch {

enum class Struct : std::uint8_t {
  kAllreduce, kAllreduceCoalesced, kReduce, kReduceScatter, kBroadcast, kGather, kScatter, kCount,
};

inline constexpr std::uint32_t kUnknownReduction = 0xFFFF;
inline constexpr std::int64_t kUnknownRoot = -1;

/// `module` is torch._C._distributed_c10d; the interpreter's lock is held. False where something was not found. Cold.
bool learn_options(PyObject* module) noexcept;

/// c10d::ReduceOp::RedOpType of a struct that has one.
std::uint32_t reduction_in(Struct kind, const void* options) noexcept;
/// Rank in the group.
std::int64_t root_in(Struct kind, const void* options) noexcept;

}  // namespace lockstep::shim::torch
