// The parts of `lockstep plan`; plan.cc holds the list.
#pragma once

#include "cli/subcommand.h"

namespace lockstep {

extern const Subcommand kPlanPartitionSubcommand;
extern const Subcommand kPlanGroupsSubcommand;
extern const Subcommand kPlanBucketsSubcommand;
extern const Subcommand kPlanScheduleSubcommand;
extern const Subcommand kPlanImportSubcommand;
extern const Subcommand kPlanExpandSubcommand;
extern const Subcommand kPlanShowSubcommand;

}  // namespace lockstep
