// Element counts and types of tensors, by functions that torch exports: its C interface (2.2 and later), else two of its C++ ones.
#pragma once

#include <cstdint>

#include "name_registry.h"
#include "torch/native.h"

namespace lockstep::shim::torch {

inline constexpr std::uint32_t kScalarTypes = 48;

/// Finds the functions, once. Cold.
void load_tensor_functions() noexcept;
/// Names of datatypes and operators into a new file. Cold.
void name_types() noexcept;

/// Elements; -1 = not known.
std::int64_t elements_of(const Tensor& tensor) noexcept;
/// Of all of them; -1 = not known of one.
std::int64_t elements_of(const Tensors& tensors) noexcept;
/// Null where it is not known.
const Meaning* type_of(const Tensor& tensor) noexcept;

/// c10d::ReduceOp::RedOpType; null for a number that is none.
const Meaning* reduction_of(std::uint32_t op) noexcept;

}  // namespace lockstep::shim::torch
