// Buckets of Megatron's gradient buffers (core/distributed/param_and_grad_buffer.py,
// core/optimizer/distrib_optimizer.py).
#include <numeric>

#include "plan/buckets.h"

namespace lockstep::plan {
namespace {

constexpr std::uint64_t kTensorAlignment = 64;
constexpr std::uint64_t kBucketAlignment = 128;
constexpr std::uint64_t kBusbwAlignment = 1 << 16;

std::uint64_t padded(std::uint64_t value, std::uint64_t divisor) {
  return (value + divisor - 1) / divisor * divisor;
}

}  // namespace

std::vector<MegatronBucket> megatron_buckets(std::span<const MegatronTensor> tensors,
                                             const MegatronBucketOptions& options) {
  const bool pads = options.distributed_optimizer;
  std::uint64_t divisor = 1;
  if (pads)
    divisor =
        std::lcm(options.data_parallel, options.pad_for_high_busbw ? kBusbwAlignment : kBucketAlignment);

  std::vector<MegatronBucket> buckets;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool empty = true;
  const auto close = [&] {
    buckets.push_back({begin, padded(end, divisor), end - begin});
    begin = end = buckets.back().end;
    empty = true;
  };
  for (std::size_t i = tensors.size(); i-- > 0;) {
    const bool alone = pads && tensors[i].shared_embedding;
    if (pads) end = padded(end, kTensorAlignment);
    if (alone && !empty) close();
    end += tensors[i].elements;
    empty = false;
    if (alone || (options.bucket_size && end - begin >= *options.bucket_size)) close();
  }
  if (!empty) close();
  return buckets;
}

}  // namespace lockstep::plan
