// The number types of a run: what parameters are stored in, what is computed in, what the optimizer keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define ZERO1_HOST_DEVICE __host__ __device__
#else
#define ZERO1_HOST_DEVICE
#endif

namespace zero1 {

/// Upper half of an IEEE float, rounded to nearest even; a NaN stays a NaN.
struct Bf16 {
  std::uint16_t bits;

  Bf16() = default;
  ZERO1_HOST_DEVICE explicit Bf16(float value) : bits(0) {
    std::uint32_t wide = 0;
    memcpy(&wide, &value, sizeof wide);
    const bool is_nan = (wide & 0x7FFFFFFFU) > 0x7F800000U;
    const std::uint32_t rounded = is_nan ? wide | 0x400000U : wide + 0x7FFFU + ((wide >> 16) & 1U);
    bits = static_cast<std::uint16_t>(rounded >> 16);
  }
  ZERO1_HOST_DEVICE explicit operator float() const {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
    float value = 0;
    memcpy(&value, &wide, sizeof value);
    return value;
  }
};

/// What an element on the wire is.
enum class DType { kF64, kF32, kBf16, kU8, kI64 };

inline std::size_t bytes_of(DType type) {
  switch (type) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
      return 4;
    case DType::kBf16:
      return 2;
    case DType::kU8:
      return 1;
  }
  return 0;
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<Bf16> {
  static constexpr DType value = DType::kBf16;
};

/// `Param`: parameters and their gradients. `Real`: activations and arithmetic. `Master`: what AdamW updates.
struct F64 {
  using Param = double;
  using Real = double;
  using Master = double;
  static constexpr const char* kName = "fp64";
};
struct F32 {
  using Param = float;
  using Real = float;
  using Master = float;
  static constexpr const char* kName = "fp32";
};
struct Mixed {
  using Param = Bf16;
  using Real = float;
  using Master = float;
  static constexpr const char* kName = "mixed";
};

}  // namespace zero1
