// Numbers of calls told of ranks by others that stand for them, against those of the job of all ranks.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/call_changes.h"
#include "plan/expansion.h"
#include "plan/read_plan.h"
#include "support/random_plan.h"

namespace lockstep {
namespace {

struct Sides {
  CallTotals all{};
  CallTotals some{};
};

/// Nothing where the plan is refused.
std::optional<Sides> totals_of(const plan::Plan& plan) {
  Sides sides;
  for (const auto iteration : {plan::Iteration::kFirst, plan::Iteration::kSteady}) {
    const auto all = plan::expand(plan, iteration, plan::Ranks::kAll);
    const auto some = plan::expand(plan, iteration, plan::Ranks::kAlikeOnce);
    if (!all || !some) return std::nullopt;
    sides.all.add(*all, plan::iteration_name(iteration));
    sides.some.add(*some, plan::iteration_name(iteration));
  }
  return sides;
}

TEST(AlikeCallTotals, AreThoseOfAllRanks) {
  testing::Random random(11);
  std::optional<Sides> base;
  int alike = 0;
  int changed = 0;
  for (int drawn = 0; drawn < 600 && !HasFailure(); ++drawn) {
    const std::string text =
        testing::random_plan(random, {.most_ranks = 48, .most_micro_batches = 3, .overrides = random.chance(50)});
    const auto plan = plan::read_plan(text, "plan");
    if (!plan) continue;
    auto sides = totals_of(*plan);
    if (!sides) continue;
    EXPECT_FALSE(sides->all.of_alike_ranks());
    EXPECT_EQ(sides->all.calls(), sides->some.calls()) << text;
    alike += sides->some.of_alike_ranks() ? 1 : 0;
    if (base) {
      const auto changes = call_changes(base->all, sides->all);
      const auto told = call_changes(base->some, sides->some);
      ASSERT_TRUE(changes && told);
      EXPECT_EQ(call_changes_text(*changes), call_changes_text(*told));
      changed += changes->empty() ? 0 : 1;
    }
    base = std::move(sides);
  }
  EXPECT_GT(alike, 50);
  EXPECT_GT(changed, 50);
}

}  // namespace
}  // namespace lockstep
