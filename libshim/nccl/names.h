// Datatypes, operators and the library's version as a trace names them; written once per file.
#pragma once

#include <cstdint>

#include "name_registry.h"
#include "nccl/api.h"

namespace lockstep::shim::nccl {

using namespace ::lockstep::nccl;

inline constexpr std::uint32_t kDatatypes = 12;
inline constexpr std::uint32_t kRedops = 5;
extern constinit Meaning g_types[kDatatypes];
extern constinit Meaning g_operators[kRedops];
/// Recorder::epoch of the file that they stand in.
extern constinit std::uint32_t g_named_epoch;

/// Writes them, the version, and NCCL_LAUNCH_ORDER_IMPLICIT into a new file. Any thread. Cold.
void begin_file() noexcept;

/// Null for a number that is none of this version's.
inline const Meaning* meaning_of(ncclDataType_t type) noexcept {
  const auto index = static_cast<std::uint32_t>(type);
  return index < kDatatypes ? &g_types[index] : nullptr;
}

/// Bytes of one element; 0 for an unknown type.
std::uint32_t bytes_of(ncclDataType_t type) noexcept;

/// An operator that the program made on `comm`: its number means something there only.
inline std::uint64_t redop_key(ncclRedOp_t op, std::uint64_t comm) noexcept {
  return (static_cast<std::uint64_t>(op) << 48) ^ comm;
}
inline const Meaning* meaning_of(ncclRedOp_t op, std::uint64_t comm) noexcept {
  const auto index = static_cast<std::uint32_t>(op);
  return index < kRedops ? &g_operators[index] : g_redops.find(redop_key(op, comm));
}
/// Cold.
void learn_premul_sum(ncclRedOp_t op, std::uint64_t comm, ncclDataType_t type, ncclScalarResidence_t residence) noexcept;

}  // namespace lockstep::shim::nccl
