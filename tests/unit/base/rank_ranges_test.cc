// How sets of ranks are written.
#include "base/rank_ranges.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep {
namespace {

struct RangesCase {
  std::string name;
  std::vector<std::int32_t> ranks;
  std::string expected;
  friend void PrintTo(const RangesCase& c, std::ostream* os) { *os << c.name; }
};

class RankRanges : public testing::TestWithParam<RangesCase> {};

TEST_P(RankRanges, AreShortAndExact) { EXPECT_EQ(rank_ranges(GetParam().ranks), GetParam().expected); }

INSTANTIATE_TEST_SUITE_P(Table, RankRanges, testing::ValuesIn<RangesCase>({
    {"None", {}, ""},
    {"One", {7}, "7"},
    {"Two", {0, 1}, "0,1"},
    {"Run", {0, 1, 2}, "0-2"},
    {"Gap", {0, 1, 2, 3, 5, 6, 7}, "0-3,5-7"},
    {"Unsorted", {3, 1, 2, 1}, "1-3"},
    {"FewApart", {0, 4, 8}, "0,4,8"},
    {"ManyApart", {0, 8, 16, 24, 32}, "0,8,..,32"},
    {"ApartThenRun", {0, 4, 5, 6, 7}, "0,4-7"},
    {"LargestRank", {2147483646, 2147483647}, "2147483646,2147483647"},
}), [](const auto& test) { return test.param.name; });

TEST(RankRangesWithin, KeepsTheWidthAndCountsTheRest) {
  std::vector<std::int32_t> primes{2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47};
  const std::string text = rank_ranges(primes, 24);
  EXPECT_EQ(text, "2,3,5,7,11,.. 15 in all");
  EXPECT_LE(text.size(), 24U);
  EXPECT_EQ(rank_ranges(primes, 16), "2,3,.. 15 in all");
}

TEST(RankRangesWithin, NamesAnOutlierAmongThousands) {
  std::vector<std::int32_t> ranks(4096);
  std::iota(ranks.begin(), ranks.end(), 0);
  std::erase(ranks, 7);
  EXPECT_EQ(named_ranks(ranks, 30), "ranks 0-6,8-4095");
}

TEST(NamedRanks, SpeakOfOneOrMany) {
  EXPECT_EQ(named_ranks(std::vector<std::int32_t>{4}), "rank 4");
  EXPECT_EQ(named_ranks(std::vector<std::int32_t>{4, 4}), "rank 4");
  EXPECT_EQ(named_ranks(std::vector<std::int32_t>{4, 6}), "ranks 4,6");
}

}  // namespace
}  // namespace lockstep
