// Buckets of torch DDP (reducer.cpp) and of DeepSpeed (runtime/engine.py, runtime/zero/stage_1_and_2.py).
#include "plan/buckets.h"

#include <algorithm>
#include <limits>
#include <map>

namespace lockstep::plan {
namespace {

constexpr std::uint64_t kNoLimit =
    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());  // sys.maxsize

}  // namespace

std::optional<std::uint64_t> element_bytes(std::string_view datatype) {
  struct Row {
    std::string_view torch_name;
    std::string_view short_name;
    std::uint64_t bytes;
  };
  static constexpr Row kRows[] = {{"float32", "f32", 4},   {"float64", "f64", 8},  {"float16", "f16", 2},
                                  {"bfloat16", "bf16", 2}, {"int8", "i8", 1},      {"uint8", "u8", 1},
                                  {"int16", "i16", 2},     {"int32", "i32", 4},    {"int64", "i64", 8},
                                  {"bool", "bool", 1},     {"complex64", "c64", 8},
                                  {"complex128", "c128", 16},
                                  {"uint16", "u16", 2},    {"uint32", "u32", 4},   {"uint64", "u64", 8},
                                  {"float8_e4m3fn", "f8e4m3", 1},
                                  {"float8_e5m2", "f8e5m2", 1}};
  for (const Row& row : kRows)
    if (datatype == row.torch_name || datatype == row.short_name) return row.bytes;
  if (datatype == "half") return 2;
  if (datatype == "float") return 4;
  if (datatype == "double") return 8;
  return std::nullopt;
}

std::vector<DdpBucket> assign_ddp_buckets(std::span<const DdpTensor> tensors,
                                          std::span<const std::uint64_t> limits, bool in_given_order) {
  struct Open {
    DdpBucket bucket{};
    std::uint64_t bytes = 0;
    std::size_t limit = 0;
  };
  std::vector<DdpBucket> buckets;
  std::map<std::size_t, Open> open;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Open& current = open[tensors[i].kind];
    current.bucket.tensors.push_back(i);
    current.bytes += tensors[i].bytes;
    current.bucket.limit_bytes = limits[current.limit];
    if (current.bytes < limits[current.limit]) continue;
    buckets.push_back(std::move(current.bucket));
    current = {.limit = std::min(current.limit + 1, limits.size() - 1)};
  }
  for (auto& [kind, current] : open)
    if (!current.bucket.tensors.empty()) buckets.push_back(std::move(current.bucket));
  if (!in_given_order)
    std::ranges::sort(buckets, {}, [](const DdpBucket& bucket) { return std::ranges::min(bucket.tensors); });
  return buckets;
}

std::optional<int> ddp_rebuild_iteration(const DdpOptions& options) {
  if (options.static_graph) return 2;
  if (options.find_unused) return std::nullopt;
  return 1;
}

std::vector<DdpBucket> ddp_buckets(std::span<const DdpTensor> tensors, std::span<const std::size_t> ready,
                                   const DdpOptions& options, int iteration) {
  const std::uint64_t capped[] = {options.first_bucket_bytes, options.cap_bytes};
  const auto rebuilt = ddp_rebuild_iteration(options);
  if (rebuilt && iteration >= *rebuilt) {
    std::vector<DdpTensor> in_order;
    for (const std::size_t tensor : ready) in_order.push_back(tensors[tensor]);
    auto buckets = assign_ddp_buckets(in_order, capped, true);
    for (DdpBucket& bucket : buckets)
      for (std::size_t& tensor : bucket.tensors) tensor = ready[tensor];
    return buckets;
  }
  const std::uint64_t unlimited[] = {kNoLimit};
  auto buckets =
      assign_ddp_buckets(tensors, rebuilt ? std::span<const std::uint64_t>(unlimited) : capped, false);
  std::ranges::reverse(buckets);  // the last layers' gradients come first
  return buckets;
}

std::vector<std::uint64_t> zero_reduce_buckets(std::span<const std::uint64_t> elements,
                                               std::uint64_t bucket_size) {
  std::vector<std::uint64_t> buckets;
  std::uint64_t filled = 0;
  for (const std::uint64_t each : elements) {
    if (filled + each > bucket_size && filled > 0) {
      buckets.push_back(filled);
      filled = 0;
    }
    filled += each;
  }
  if (filled > 0) buckets.push_back(filled);
  return buckets;
}

std::vector<std::uint64_t> zero0_buckets(std::span<const std::uint64_t> elements, std::uint64_t bucket_size) {
  std::vector<std::uint64_t> buckets;
  std::uint64_t filled = 0;
  for (const std::uint64_t each : elements) {
    filled += each;
    if (filled <= bucket_size) continue;
    buckets.push_back(filled);
    filled = 0;
  }
  if (filled > 0) buckets.push_back(filled);
  return buckets;
}

std::uint64_t zero_padded_elements(std::uint64_t elements, std::uint64_t data_parallel,
                                   std::uint64_t part_alignment) {
  const std::uint64_t alignment = part_alignment * data_parallel;
  return (elements + alignment - 1) / alignment * alignment;
}

}  // namespace lockstep::plan
