// Who stays when a communicator shrinks: found from the hash of those left out.
#include "read/trace_grown.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

std::uint64_t hash_of(const std::vector<std::uint64_t>& excluded) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < excluded.size(); ++i) hash = trace::mix(hash ^ excluded[i], i + 1);
  return hash;
}

TEST(ShrinkSurvivors, AreThoseThatTheHashLeaves) {
  EXPECT_EQ(shrink_survivors(4, 3, hash_of({1})), (std::vector<std::size_t>{0, 2, 3}));
  EXPECT_EQ(shrink_survivors(4, 3, hash_of({0})), (std::vector<std::size_t>{1, 2, 3}));
  EXPECT_EQ(shrink_survivors(6, 3, hash_of({5, 0, 3})), (std::vector<std::size_t>{1, 2, 4}));  // as passed, in any order
  EXPECT_EQ(shrink_survivors(512, 511, hash_of({300}))->size(), 511U);
}

TEST(ShrinkSurvivors, AreNotGuessed) {
  EXPECT_FALSE(shrink_survivors(4, 3, 12345));
  EXPECT_FALSE(shrink_survivors(4, 3, 0));
  EXPECT_FALSE(shrink_survivors(4, 4, hash_of({1})));
  EXPECT_FALSE(shrink_survivors(4, 0, hash_of({1})));
  EXPECT_FALSE(shrink_survivors(100000, 50000, 1));  // too many ways
  EXPECT_FALSE(shrink_survivors(64, 32, 1));
}

}  // namespace
}  // namespace lockstep
