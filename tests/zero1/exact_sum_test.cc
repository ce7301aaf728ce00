// Sums without rounding: no order of adding, and no way to spread numbers over ranks, shows in them.
#include "exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace zero1 {
namespace {

double exact(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return ExactSum::value_of(sum.digits());
}

TEST(ExactSum, LosesNothing) {
  EXPECT_EQ(exact({}), 0);
  EXPECT_EQ(exact({0.1}), 0.1);
  EXPECT_EQ(exact({1e300, 1, 1e-300, -1e300}), 1);  // the smallest part is below what a double near 1 shows
  EXPECT_EQ(exact({1e300, 1e-300, -1e300}), 1e-300);
  EXPECT_EQ(exact({5e-324, 5e-324}), 1e-323);
  EXPECT_EQ(exact(std::vector<double>(1000, 0.1)), 0x1.9000000000000000000p+6);  // 0.1 is a little more than a tenth
}

TEST(ExactSum, OfSquaresKeepsBothHalves) {
  ExactSum sum;
  sum.add_square(1 + 0x1p-52);
  sum.add(-1);
  sum.add(-0x1p-51);
  EXPECT_EQ(ExactSum::value_of(sum.digits()), 0x1p-104);
}

TEST(ExactSum, IsInfiniteWhereAPartIs) {
  ExactSum sum;
  sum.add_square(1e200);
  EXPECT_TRUE(std::isinf(ExactSum::value_of(sum.digits())));
  sum.add(std::nan(""));
  EXPECT_TRUE(std::isnan(ExactSum::value_of(sum.digits())));
}

TEST(ExactSum, DoesNotShowHowItWasSpread) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> mantissa;
  std::uniform_int_distribution<int> exponent(-300, 300);
  std::vector<double> values;
  for (int i = 0; i < 2000; ++i) values.push_back(std::ldexp(mantissa(random), exponent(random)));
  const double whole = exact(values);
  for (int round = 0; round < 50; ++round) {
    std::shuffle(values.begin(), values.end(), random);
    SquaredSum total;
    const std::size_t ranks = 1 + static_cast<std::size_t>(round) % 7;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      ExactSum part;
      for (std::size_t i = rank; i < values.size(); i += ranks) part.add(values[i]);
      const SquaredSum digits = part.digits();
      total.resize(digits.size());
      for (std::size_t i = 0; i < digits.size(); ++i) total[i] += digits[i];
    }
    EXPECT_EQ(ExactSum::value_of(total), whole);
  }
}

}  // namespace
}  // namespace zero1
