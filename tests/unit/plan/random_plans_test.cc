// Random plans that hold: no finding, and a fault in what is expanded from them is found. The long version is
// tests/bench/random_plans_full.
#include <gtest/gtest.h>

#include "diagnose/diagnose.h"
#include "support/plan_trial.h"

namespace lockstep::testing {
namespace {

TEST(RandomPlans, HaveNoFindingAndTheirFaultsHave) {
  const std::string path = ::testing::TempDir() + "lockstep_random_plan.json";
  int faults = 0;
  for (std::uint64_t seed = 500'000; seed < 500'150; ++seed) {
    const DrawnPlan plan = draw_valid_plan(seed, 32);
    ASSERT_EQ(gate_accusation(plan, path), "") << "seed " << seed << '\n' << plan.text;
    const auto faulted = draw_wrong_plan_job(plan, seed, 200'000);
    if (!faulted) continue;
    ++faults;
    ASSERT_NE(diagnose(build_job(faulted->job)).verdict, Verdict::kConsistent)
        << "seed " << seed << ": " << faulted->fault.what << "; " << faulted->reason << '\n' << plan.text;
  }
  EXPECT_GT(faults, 120);
}

}  // namespace
}  // namespace lockstep::testing
