// What must agree between the members of one collective, and between the two sides of a message.
// Rules: nccl.h and the NCCL user guide ("Collective Operations"); MPI 3.1 chapter 5; torch.distributed follows NCCL.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/job.h"
#include "model/operation.h"

namespace lockstep {

/// The first thing in which two calls at one position differ, in the order in which a reader should hear of it.
enum class Difference : std::uint8_t {
  kNone,
  kKind,        ///< other collective, or blocking against nonblocking in MPI
  kRoot,
  kCreation,    ///< other members or arguments of a new communicator
  kCount,
  kDatatype,
  kReduction,
  kPayload,     ///< messages only: an activation where a gradient is expected
  kCapture,     ///< executed by a graph on one side, called directly on the other
};

/// Hash over exactly the arguments that must agree; equal calls have equal signatures on every rank.
std::uint64_t signature(const Job& job, const Operation& operation);

/// kNone exactly where `signature` agrees (up to hash collision).
Difference compare_collective(const Job& job, const Operation& a, const Operation& b);

/// A send and the receive it was matched with. MPI lets the receive be longer; elsewhere counts must be equal.
Difference compare_message(const Job& job, const Operation& send, const Operation& receive);

/// True where ranks that differ in this cannot complete the collective together. Other differences corrupt data or pass.
constexpr bool prevents_completion(Difference difference) {
  return difference == Difference::kKind || difference == Difference::kRoot || difference == Difference::kCount ||
         difference == Difference::kCreation;
}

/// A collective of no elements, which NCCL does not enqueue. (What one member of a v-collective has is not all of it.)
constexpr bool is_empty_collective(const Operation& operation) {
  return operation.count == Count::of(0) && op_class(operation.kind) == OpClass::kCollective && !has_free_count(operation.kind);
}

/// Bytes of all elements of a call; nothing where type or count is not known as a number.
std::optional<std::uint64_t> operation_bytes(const Job& job, const Operation& operation);

/// Bytes of one element; 0 = not known (object, a type of the user).
std::size_t datatype_bytes(std::string_view datatype);

}  // namespace lockstep
