// A report on ranks that stand for others says of all ranks what a report on all ranks says.
#include "cli/alike_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "diagnose/diagnose.h"
#include "plan/expansion.h"
#include "plan/read_plan.h"
#include "support/random_plan.h"

namespace lockstep {
namespace {

/// Several groups that go wrong alike are one finding here and may be several there; their ranks are joined here. Where
/// groups that wait for each other differ alike, only one of the findings there is told as the cause of a deadlock.
std::string contradiction(const Report& of_all, const Report& told) {
  const auto stands_still = [](Verdict verdict) { return verdict == Verdict::kImbalance || verdict == Verdict::kDeadlock; };
  if (of_all.verdict != told.verdict && !(stands_still(of_all.verdict) && stands_still(told.verdict)))
    return fmt::format("verdict {} instead of {}", verdict_name(told.verdict), verdict_name(of_all.verdict));
  std::string nearest = "no finding";
  const Finding& wanted = of_all.findings.front();
  for (const Finding& finding : told.findings) {
    if (finding.finding_class != wanted.finding_class || finding.severity != wanted.severity ||
        finding.communicator->name != wanted.communicator->name ||
        finding.divergent_meaning != wanted.divergent_meaning)
      continue;
    nearest = fmt::format("ranks {} instead of {}", fmt::join(finding.divergent_ranks, ","),
                          fmt::join(wanted.divergent_ranks, ","));
    if (std::ranges::includes(finding.divergent_ranks, wanted.divergent_ranks)) return "";
  }
  return fmt::format("{} {} on {}: {}", severity_name(wanted.severity), wanted.finding_class,
                     wanted.communicator ? wanted.communicator->name : "none", nearest);
}

/// Ranks that a finding names although no finding of the replay of all ranks does.
std::vector<std::int32_t> innocent_ranks(const Report& of_all, const Report& told) {
  std::set<std::int32_t> named;
  for (const Finding& finding : of_all.findings) named.insert(finding.divergent_ranks.begin(), finding.divergent_ranks.end());
  std::vector<std::int32_t> innocent;
  for (const Finding& finding : told.findings)
    if (finding.severity <= Severity::kContractViolation) std::ranges::copy_if(finding.divergent_ranks, std::back_inserter(innocent),
                         [&](std::int32_t rank) { return !named.contains(rank); });
  return innocent;
}

TEST(AlikeFindings, NameTheRanksThatAReplayOfAllRanksNames) {
  testing::Random random(3);
  int compared = 0;
  int cannot = 0;
  for (int drawn = 0; drawn < 4000; ++drawn) {
    const std::string text = testing::random_plan(random, {.most_ranks = 48, .most_micro_batches = 3, .overrides = true});
    const auto plan = plan::read_plan(text, "plan");
    if (!plan) continue;
    const auto iteration = random.chance(50) ? plan::Iteration::kFirst : plan::Iteration::kSteady;
    const auto some = plan::expand(*plan, iteration, plan::Ranks::kAlikeOnce);
    if (!some || !some->alike) continue;
    Report told = diagnose(some->job);
    if (told.findings.empty()) continue;
    if (!can_tell_of_all_ranks(*some)) {
      ++cannot;
      continue;
    }
    const auto all = plan::expand(*plan, iteration);
    ASSERT_TRUE(all);
    const Report report = diagnose(all->job);
    tell_of_all_ranks(*some, told);
    EXPECT_EQ(told.input_quality.ranks_seen, report.input_quality.ranks_seen);
    EXPECT_EQ(contradiction(report, told), "") << text;
    EXPECT_EQ(innocent_ranks(report, told), std::vector<std::int32_t>()) << text;
    ++compared;
  }
  EXPECT_GT(compared, 150);
  EXPECT_LT(cannot, compared);
}

}  // namespace
}  // namespace lockstep
