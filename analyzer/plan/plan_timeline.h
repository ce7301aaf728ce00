// The schedule that a plan names, as a Timeline, and whose functions run it.
#pragma once

#include "plan/expansion.h"
#include "plan/partition.h"
#include "plan/plan.h"
#include "plan/schedule/lower_to_job.h"
#include "plan/schedule/timeline.h"

namespace lockstep::plan {

/// The schedule of the plan for one iteration. Errors name the field, or are the framework's own refusal.
Result<Timeline> plan_timeline(const Plan& plan, const Parts& parts, Iteration iteration);

ScheduleSource schedule_source(const Plan& plan);

}  // namespace lockstep::plan
