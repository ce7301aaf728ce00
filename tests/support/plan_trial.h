// One random plan, and a Job expanded from it with a fault that the oracle calls wrong: the trial that tests and
// benchmark share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan.h"
#include "support/random_trial.h"
#include "support/sketch.h"

namespace lockstep::testing {

/// The Job as something that a test can change. Communicators are named by their ids.
JobSketch sketch_of(const Job& job);

struct DrawnPlan {
  std::string text{};
  plan::Plan plan{};
};

/// The first plan from the seed on that its framework takes, of at most `most_ranks` ranks.
DrawnPlan draw_valid_plan(std::uint64_t seed, std::int64_t most_ranks = 512);

/// "" where `lockstep gate` finds nothing above `unsafe` in the plan, else what it accuses. Writes the plan to `path`.
std::string gate_accusation(const DrawnPlan& plan, const std::string& path);

/// One of the plan's iterations with a fault; nothing where none of the draws does harm, or where the job is too large
/// for the oracle, which goes over all calls again for about every call of the longest program: `most_work` is the most
/// that the product may be.
std::optional<FaultedJob> draw_wrong_plan_job(const DrawnPlan& plan, std::uint64_t seed, std::size_t most_work = 4'000'000);

}  // namespace lockstep::testing
