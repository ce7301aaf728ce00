// Element by element, for every type of the library.
#include "nccl/reduce.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace lockstep::standin {
namespace {

using namespace nccl;

struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};

float wide(Brain value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }

float wide(Half value) {
  const std::uint32_t sign = std::uint32_t{value.bits} >> 15 << 31;
  const std::uint32_t exponent = (value.bits >> 10) & 31U;
  const std::uint32_t fraction = value.bits & 1023U;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

/// Nearest, ties to even.
void narrow(float value, Brain& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    out.bits = static_cast<std::uint16_t>(bits >> 16 | 64U);
    return;
  }
  out.bits = static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

void narrow(float value, Half& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const float magnitude = std::fabs(value);
  std::uint32_t half = 0;
  if (std::isnan(value)) {
    half = 0x7e00;
  } else if (magnitude >= 65520.0F) {  // half of the way beyond the largest
    half = 0x7c00;
  } else if (magnitude < std::ldexp(1.0F, -14)) {
    half = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, 24)));  // carries into the exponent by itself
  } else {
    const std::uint32_t rest = bits & 0x7fffffffU;
    half = (rest + 0xfffU + (rest >> 13 & 1U) - (112U << 23)) >> 13;
  }
  out.bits = static_cast<std::uint16_t>(sign | half);
}

template <class T>
constexpr bool kSmallFloat = std::is_same_v<T, Half> || std::is_same_v<T, Brain>;

template <class T>
T binary(T a, T b, int redop) {
  if constexpr (kSmallFloat<T>) {
    T result{};
    narrow(binary(wide(a), wide(b), redop), result);
    return result;
  } else {
    using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
    switch (redop) {
      case ncclProd:
        return static_cast<T>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b));
      case ncclMax:
        return a < b ? b : a;
      case ncclMin:
        return b < a ? b : a;
      default:
        return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
    }
  }
}

/// Calls function(T{}) with the type of `datatype`.
template <class F>
void with_type(int datatype, F function) {
  switch (datatype) {
    case ncclInt8:
      return function(std::int8_t{});
    case ncclInt32:
      return function(std::int32_t{});
    case ncclUint32:
      return function(std::uint32_t{});
    case ncclInt64:
      return function(std::int64_t{});
    case ncclUint64:
      return function(std::uint64_t{});
    case ncclFloat16:
      return function(Half{});
    case ncclFloat32:
      return function(float{});
    case ncclFloat64:
      return function(double{});
    case ncclBfloat16:
      return function(Brain{});
    default:
      return function(std::uint8_t{});
  }
}

template <class T>
T load(const void* values, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(values) + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(void* values, std::size_t i, T value) {
  std::memcpy(static_cast<std::byte*>(values) + i * sizeof(T), &value, sizeof(T));
}

}  // namespace

std::size_t datatype_bytes(int datatype) {
  switch (datatype) {
#define X(name, value, bytes, text) \
  case value:                       \
    return bytes;
    LOCKSTEP_NCCL_DATATYPES(X)
#undef X
    default:
      return 0;
  }
}

bool is_floating(int datatype) {
  return datatype == ncclFloat16 || datatype == ncclFloat32 || datatype == ncclFloat64 || datatype == ncclBfloat16;
}

void combine(void* into, const void* from, std::size_t count, int datatype, int redop) {
  with_type(datatype, [&](auto type) {
    using T = decltype(type);
    for (std::size_t i = 0; i < count; ++i) store(into, i, binary(load<T>(into, i), load<T>(from, i), redop));
  });
}

void divide(void* values, std::size_t count, int datatype, int ranks) {
  with_type(datatype, [&](auto type) {
    using T = decltype(type);
    if constexpr (std::is_integral_v<T>)
      for (std::size_t i = 0; i < count; ++i) store(values, i, static_cast<T>(load<T>(values, i) / static_cast<T>(ranks)));
  });
}

void scale(void* values, std::size_t count, int datatype, const void* scalar) {
  with_type(datatype, [&](auto type) {
    using T = decltype(type);
    const T factor = load<T>(scalar, 0);
    for (std::size_t i = 0; i < count; ++i) store(values, i, binary(load<T>(values, i), factor, ncclProd));
  });
}

void reciprocal(void* scalar, int datatype, int ranks) {
  with_type(datatype, [&](auto type) {
    using T = decltype(type);
    if constexpr (kSmallFloat<T>) {
      T value{};
      narrow(1.0F / static_cast<float>(ranks), value);
      store(scalar, 0, value);
    } else {
      store(scalar, 0, static_cast<T>(T{1} / static_cast<T>(ranks)));
    }
  });
}

}  // namespace lockstep::standin
