// 10,000 random plans that hold: accusations of them by `lockstep gate`, and whether a fault in the Job expanded from
// each is found. Usage: random_plans_full [PLANS [FIRST_SEED [DIRECTORY]]]; DIRECTORY (default: the working directory)
// receives what was judged wrongly. Exit status 1 for a false accusation or an unflagged fault.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "diagnose/diagnose.h"
#include "plan/read_plan.h"
#include "support/plan_trial.h"

namespace lockstep::testing {
namespace {

struct Tally {
  int plans = 0, faults = 0, flagged = 0;
  std::int64_t most_ranks = 0;
};

std::int64_t ranks_of(const plan::Topology& topology) {
  return topology.pipe * topology.data * topology.tensor * topology.context;
}

int run(std::uint64_t plans, std::uint64_t first, const std::string& directory) {
  int accusations = 0;
  std::map<std::string, Tally> by_framework;
  Tally all;
  const std::string path = directory + "/random_plan." + std::to_string(first) + ".json";
  for (std::uint64_t seed = first; seed < first + plans; ++seed) {
    const DrawnPlan plan = draw_valid_plan(seed);
    const auto start = std::chrono::steady_clock::now();
    Tally& tally = by_framework[std::string(plan::framework_name(plan.plan.framework)) + " " + plan.plan.schedule.name];
    ++tally.plans;
    ++all.plans;
    tally.most_ranks = std::max(tally.most_ranks, ranks_of(plan.plan.topology));
    all.most_ranks = std::max(all.most_ranks, ranks_of(plan.plan.topology));
    if (const std::string accusation = gate_accusation(plan, path); !accusation.empty()) {
      ++accusations;
      std::printf("FALSE ACCUSATION seed %llu: %s\n%s\n", static_cast<unsigned long long>(seed), accusation.c_str(),
                  plan.text.c_str());
    }
    const auto faulted = draw_wrong_plan_job(plan, seed);
    if (faulted) {
      ++tally.faults;
      ++all.faults;
      const Report report = diagnose(build_job(faulted->job));
      if (report.verdict != Verdict::kConsistent && report.verdict != Verdict::kInsufficient) {
        ++tally.flagged;
        ++all.flagged;
      } else {
        std::printf("UNFLAGGED seed %llu: %s\n    oracle: %s\n", static_cast<unsigned long long>(seed),
                    faulted->fault.what.c_str(), faulted->reason.c_str());
        std::ofstream(directory + "/unflagged" + std::to_string(seed) + ".json") << to_job_json(faulted->job);
      }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (took.count() > 5)
      std::printf("seed %llu took %.1f s: %lld ranks\n", static_cast<unsigned long long>(seed), took.count(),
                  static_cast<long long>(ranks_of(plan.plan.topology)));
    std::fflush(stdout);
  }
  std::remove(path.c_str());
  by_framework["all"] = all;
  for (const auto& [name, tally] : by_framework)
    std::printf("%-34s %6d plans, up to %4lld ranks; %6d with a harmful fault, %6d flagged\n", name.c_str(), tally.plans,
                static_cast<long long>(tally.most_ranks), tally.faults, tally.flagged);
  std::printf("%llu plans from seed %llu: %d false accusations\n", static_cast<unsigned long long>(plans),
              static_cast<unsigned long long>(first), accusations);
  return accusations == 0 && all.flagged == all.faults ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  const std::uint64_t plans = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000;
  const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  return lockstep::testing::run(plans, first, argc > 3 ? argv[3] : ".");
}
