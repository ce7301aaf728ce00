// A sum of doubles without any rounding, kept as digits of 32 bits: the order of adding, and which rank adds what, leave
// no trace in it. With --ordered the gradient norm is summed so; then clipping is the same for every layout.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace zero1 {

/// A sum of squares as it travels: one number, or the digits of an ExactSum. Both add up element by element.
using SquaredSum = std::vector<double>;

class ExactSum {
 public:
  /// Of up to 2^31 numbers. Infinite or NaN: so is the sum.
  void add(double value) {
    if (!std::isfinite(value)) {
      unfit_ += value;
      return;
    }
    int exponent = 0;
    const auto mantissa = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::fabs(value), &exponent), 53));
    const auto place = static_cast<std::size_t>(exponent - 53 - kLowest);
    add_half(mantissa & kMask, place, value < 0);
    add_half(mantissa >> 32, place + 32, value < 0);
  }
  /// value * value, though it has twice the bits of a double.
  void add_square(double value) {
    const double product = value * value;
    add(product);
    if (std::isfinite(product)) add(std::fma(value, value, -product));
  }

  /// Each below 2^32: doubles that many ranks can add up without rounding, in any order.
  SquaredSum digits() const {
    SquaredSum result = carried(digits_);
    result[0] += unfit_;
    return result;
  }

  /// The number that digits stand for; anything of one element stands for itself.
  static double value_of(const SquaredSum& sum) {
    if (sum.size() != kDigits) return sum.at(0);
    Digits digits{};
    for (std::size_t i = 0; i < kDigits; ++i) {
      if (!std::isfinite(sum[i])) return sum[i];
      digits[i] = static_cast<std::int64_t>(sum[i]);
    }
    const SquaredSum carried_digits = carried(digits);
    double value = 0;
    for (std::size_t i = kDigits; i-- > 0;) value += std::ldexp(carried_digits[i], kLowest + 32 * static_cast<int>(i));
    return value;
  }

 private:
  static constexpr int kLowest = -1152;  ///< exponent of the lowest bit, below that of the smallest double
  static constexpr std::size_t kDigits = 70;
  static constexpr std::uint64_t kMask = 0xFFFFFFFF;
  using Digits = std::array<std::int64_t, kDigits>;

  void add_half(std::uint64_t half, std::size_t place, bool negative) {
    const std::uint64_t bits = half << (place % 32);
    const auto low = static_cast<std::int64_t>(bits & kMask), high = static_cast<std::int64_t>(bits >> 32);
    digits_[place / 32] += negative ? -low : low;
    digits_[place / 32 + 1] += negative ? -high : high;
  }

  static SquaredSum carried(const Digits& digits) {
    SquaredSum result(kDigits);
    std::int64_t carry = 0;
    for (std::size_t i = 0; i < kDigits; ++i) {
      const std::int64_t digit = digits[i] + carry;
      carry = digit >> 32;  // rounds down, so what stays is not negative
      result[i] = static_cast<double>(digit - carry * (std::int64_t{1} << 32));
    }
    return result;
  }

  Digits digits_{};
  double unfit_ = 0;
};

}  // namespace zero1
