// "Did you mean".
#include "cli/nearest.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 3> kWords{"check", "show", "explain"};

TEST(NearestWord, FindsSmallSlipsOnly) {
  EXPECT_EQ(nearest_word("chek", kWords), "check");
  EXPECT_EQ(nearest_word("shwo", kWords), "");
  EXPECT_EQ(nearest_word("explian", kWords), "explain");
  EXPECT_EQ(nearest_word("zzz", kWords), "");
  EXPECT_EQ(nearest_word("", kWords), "");
  EXPECT_EQ(nearest_word(std::string(100000, 'x'), kWords), "");
}

}  // namespace
}  // namespace lockstep
