#include "ordered_sum.h"

#include <cstring>

namespace zero1 {
namespace {

template <class Stored, class Wide>
void add_parts(const void* parts, void* result, std::size_t count, std::size_t stride, int ranks) {
  const auto* from = static_cast<const Stored*>(parts);
  auto* to = static_cast<Stored*>(result);
  for (std::size_t i = 0; i < count; ++i) {
    Wide sum{};
    for (int rank = 0; rank < ranks; ++rank)
      sum += static_cast<Wide>(from[static_cast<std::size_t>(rank) * stride + i]);
    to[i] = static_cast<Stored>(sum);
  }
}

}  // namespace

void sum_in_rank_order(const void* parts, void* result, std::size_t count, std::size_t stride, int ranks,
                       DType type) {
  switch (type) {
    case DType::kF64:
      return add_parts<double, double>(parts, result, count, stride, ranks);
    case DType::kF32:
      return add_parts<float, float>(parts, result, count, stride, ranks);
    case DType::kBf16:
      return add_parts<Bf16, float>(parts, result, count, stride, ranks);
    case DType::kU8:
      return add_parts<std::uint8_t, unsigned>(parts, result, count, stride, ranks);
    case DType::kI64:
      return add_parts<std::int64_t, std::int64_t>(parts, result, count, stride, ranks);
  }
}

void narrow_to(void* values, const void* wide, std::size_t count, DType type) {
  if (count == 0) return;
  if (type != DType::kBf16) {
    std::memcpy(values, wide, count * bytes_of(type));
    return;
  }
  for (std::size_t i = 0; i < count; ++i)
    static_cast<Bf16*>(values)[i] = Bf16(static_cast<const float*>(wide)[i]);
}

WideValues::WideValues(void* values, std::size_t count, DType type) : values_(values), type_(type) {
  if (type != DType::kBf16) return;
  wide_.resize(count);
  for (std::size_t i = 0; i < count; ++i) wide_[i] = static_cast<float>(static_cast<const Bf16*>(values)[i]);
}

}  // namespace zero1
