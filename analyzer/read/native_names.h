// What frameworks and libraries call an operation, an element type or a reduction, and what we call it.
#pragma once

#include <optional>
#include <string_view>

#include "lockstep/op_kind.h"

namespace lockstep {

struct NamedKind {
  OpKind kind = OpKind::kUnknown;
  bool nonblocking = false;  ///< the name itself says so: MPI_Iallreduce, isend
};

/// The kind behind a name: ours ("all_reduce"), torch's ("all_gather_into_tensor"), NCCL's ("ncclAllReduce"), MPI's
/// ("MPI_Allreduce", and their MPI_I* and MPI_*_init forms). Empty for a name that is none of these.
std::optional<NamedKind> kind_from_native_name(std::string_view name);

/// Our short name of an element type: "float32", "torch.float32", "ncclFloat32", "MPI_FLOAT", "Float" give "f32". Empty for a
/// name outside the list; callers keep such a name as it is.
std::string_view datatype_from_native_name(std::string_view name);

/// Our name of a reduction: "SUM", "ReduceOp.SUM", "ncclSum", "MPI_SUM" give "sum". Empty for a name outside the list.
std::string_view redop_from_native_name(std::string_view name);

}  // namespace lockstep
