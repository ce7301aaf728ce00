// Sums of equal parts in rank order, and bf16 widened for a library that cannot add it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "numbers.h"

namespace zero1 {

enum class Sum { kSum, kMax };

/// result[i] = sum over ranks r, in their order, of parts[r * stride + i]. bf16 is added as float and rounded
/// once.
void sum_in_rank_order(const void* parts, void* result, std::size_t count, std::size_t stride, int ranks,
                       DType type);

/// Stores `count` elements that were widened (bf16 as float); other types are copied.
void narrow_to(void* values, const void* wide, std::size_t count, DType type);

/// The values themselves, or their copy as float where they are bf16; `store` puts the copy back.
class WideValues {
 public:
  WideValues(void* values, std::size_t count, DType type);
  void* data() { return type_ == DType::kBf16 ? wide_.data() : values_; }
  DType type() const { return type_ == DType::kBf16 ? DType::kF32 : type_; }
  void store() {
    if (type_ == DType::kBf16) narrow_to(values_, wide_.data(), wide_.size(), type_);
  }

 private:
  void* values_;
  DType type_;
  std::vector<float> wide_;
};

}  // namespace zero1
