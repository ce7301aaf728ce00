// The optimizer's parameter groups of one stage, by the rule of the plan.
#pragma once

#include "plan/stages.h"

namespace lockstep::plan {

/// Fills groups, dropped and why_dropped from the parameters. `index` is the number of the stage, for the
/// words.
void make_groups(const Plan& plan, std::int64_t index, bool drop_empty, Stage& stage);

}  // namespace lockstep::plan
