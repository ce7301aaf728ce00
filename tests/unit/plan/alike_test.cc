// Ranks that stand for others: the theorem of plan/alike.h, checked call by call and by replay on random plans, right
// and wrong ones.
#include "plan/alike.h"

#include <gtest/gtest.h>

#include <array>

#include "match/match.h"
#include "plan/expansion.h"
#include "plan/read_plan.h"
#include "replay/replay.h"
#include "support/alike_check.h"
#include "support/random_plan.h"

namespace lockstep::plan {
namespace {

struct Tally {
  int plans = 0;
  int joined = 0;     ///< plans in which some rank stands for another
  int standing = 0;   ///< of these, plans that do not come to their end
};

/// Every iteration of `number` plans that the frameworks take.
Tally check_random_plans(std::uint64_t seed, int number, const lockstep::testing::RandomPlanOptions& options) {
  lockstep::testing::Random random(seed);
  Tally tally;
  for (int drawn = 0; tally.plans < number && drawn < 10 * number; ++drawn) {
    const std::string text = lockstep::testing::random_plan(random, options);
    const auto plan = read_plan(text, "plan");
    if (!plan) continue;
    const Iteration iteration = std::array{Iteration::kFirst, Iteration::kSecond, Iteration::kSteady,
                                           Iteration::kSkipped}[random.below(4U)];
    const auto all = expand(*plan, iteration);
    const auto some = expand(*plan, iteration, Ranks::kAlikeOnce);
    EXPECT_EQ(all.has_value(), some.has_value()) << text;
    if (!all || !some) continue;
    ++tally.plans;
    if (!some->alike) continue;
    ++tally.joined;
    EXPECT_LT(some->job.programs().size(), all->job.programs().size());
    EXPECT_EQ(call_count(*some), all->job.operation_count()) << text;
    EXPECT_EQ(lockstep::testing::broken_condition(*all, *some), "") << text;
    EXPECT_EQ(lockstep::testing::different_outcome(*all, *some), "") << text;
    const MatchResult matched = match(all->job);
    tally.standing += replay(all->job, matched, {}).finished() ? 0 : 1;
    if (::testing::Test::HasFailure()) break;
  }
  return tally;
}

TEST(AlikeRanks, StandForAllOnPlansThatHold) {
  const Tally tally = check_random_plans(1, 600, {.most_ranks = 64});
  EXPECT_EQ(tally.plans, 600);
  EXPECT_GT(tally.joined, 400);
  EXPECT_EQ(tally.standing, 0);
}

TEST(AlikeRanks, StandForAllOnPlansWithFaults) {
  const Tally tally = check_random_plans(2, 1200, {.most_ranks = 48, .overrides = true});
  EXPECT_EQ(tally.plans, 1200);
  EXPECT_GT(tally.joined, 500);
  EXPECT_GT(tally.standing, 50);
}

}  // namespace
}  // namespace lockstep::plan
