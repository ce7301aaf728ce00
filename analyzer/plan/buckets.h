// How gradients are gathered into buckets, one collective a bucket: torch DDP, Megatron and DeepSpeed ZeRO.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep::plan {

inline constexpr std::size_t kMaxTensors = 1'000'000;
inline constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 48;  ///< of one tensor

/// "float32", "f32", "bfloat16" ...; nothing for an unknown name.
std::optional<std::uint64_t> element_bytes(std::string_view datatype);

// --- torch DistributedDataParallel ---

struct DdpTensor {
  std::uint64_t bytes = 0;
  std::size_t kind = 0;  ///< tensors of another datatype or device never share a bucket
};

struct DdpBucket {
  std::vector<std::size_t> tensors{};  ///< indices, in the order in which they came
  std::uint64_t limit_bytes = 0;       ///< the limit that it was filled under
};

/// compute_bucket_assignment_by_size: a bucket closes once it has reached its limit; the first of a kind
/// under the first limit, later ones under the following, the last of which stays. `in_given_order`: the
/// tensors are in the order in which their gradients come, so the buckets keep it; else they are sorted by
/// their lowest index. `limits` is not empty.
std::vector<DdpBucket> assign_ddp_buckets(std::span<const DdpTensor> tensors,
                                          std::span<const std::uint64_t> limits, bool in_given_order);

struct DdpOptions {
  std::uint64_t first_bucket_bytes = 1024 * 1024;
  std::uint64_t cap_bytes = 25 * 1024 * 1024;
  bool find_unused = false;
  bool static_graph = false;
};

/// Iteration from which the rebuilt buckets hold; nothing: they are never rebuilt. Two broadcasts mark its
/// forward pass.
std::optional<int> ddp_rebuild_iteration(const DdpOptions& options);

/// The buckets of one iteration, in the order in which they are reduced. `ready` is the order in which
/// gradients come.
std::vector<DdpBucket> ddp_buckets(std::span<const DdpTensor> tensors, std::span<const std::size_t> ready,
                                   const DdpOptions& options, int iteration);

// --- Megatron DistributedDataParallel ---

struct MegatronTensor {
  std::uint64_t elements = 0;
  bool shared_embedding = false;  ///< has a bucket of its own with the distributed optimizer
};

struct MegatronBucketOptions {
  std::optional<std::uint64_t> bucket_size{};  ///< elements; nothing: one bucket
  bool distributed_optimizer = false;
  std::uint64_t data_parallel = 1;
  bool pad_for_high_busbw = false;
};

struct MegatronBucket {
  std::uint64_t begin = 0;     ///< element in the buffer
  std::uint64_t end = 0;       ///< padded with the distributed optimizer
  std::uint64_t unpadded = 0;  ///< elements
};

/// From the tensors in order of registration; the buffer holds them in reverse.
std::vector<MegatronBucket> megatron_buckets(std::span<const MegatronTensor> tensors,
                                             const MegatronBucketOptions& options);

// --- DeepSpeed ---

/// ZeRO-1 and 2: elements of each reduction of gradients that come in this order; a bucket is sent before the
/// gradient that would make it larger than `bucket_size`. A gradient larger than that goes alone.
std::vector<std::uint64_t> zero_reduce_buckets(std::span<const std::uint64_t> elements,
                                               std::uint64_t bucket_size);

/// Without ZeRO: a bucket is sent once it is larger than `bucket_size`.
std::vector<std::uint64_t> zero0_buckets(std::span<const std::uint64_t> elements, std::uint64_t bucket_size);

/// Elements of an optimizer group as one flat tensor: padded so that every rank's part starts aligned.
std::uint64_t zero_padded_elements(std::uint64_t elements, std::uint64_t data_parallel,
                                   std::uint64_t part_alignment = 2);  // nccl_start_alignment_factor

}  // namespace lockstep::plan
