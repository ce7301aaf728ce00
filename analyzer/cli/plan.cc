// `lockstep plan`: what the frameworks would do, from parameters or from a plan; each part is a subcommand of
// its own.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "cli/nearest.h"
#include "cli/output.h"
#include "cli/plan_parts.h"
#include "cli/subcommand.h"

namespace lockstep {
namespace {

constexpr std::array kParts = {&kPlanPartitionSubcommand, &kPlanGroupsSubcommand, &kPlanBucketsSubcommand,
                               &kPlanScheduleSubcommand,  &kPlanExpandSubcommand, &kPlanShowSubcommand,
                               &kPlanImportSubcommand};

// Parts are called "plan NAME": the user types NAME.
std::string_view short_name(const Subcommand* part) { return part->name.substr(part->name.find(' ') + 1); }

std::string help_text() {
  std::string text =
      fmt::format("{}\n\nusage: lockstep {}\n\n", kPlanSubcommand.summary, kPlanSubcommand.usage);
  for (const Subcommand* part : kParts) text += fmt::format("  {:<11}{}\n", short_name(part), part->summary);
  return text;
}

int run_plan(std::span<const std::string_view> args) {
  if (args.empty())
    return usage_error(kPlanSubcommand, "it takes the name of a part; see lockstep plan --help");
  if (args[0] == "--help" || args[0] == "-h")
    return write_stdout(help_text()) ? kExitConsistent : kExitInternal;
  const auto found = std::ranges::find(kParts, args[0], short_name);
  if (found != kParts.end()) return (*found)->run(args.subspan(1));
  std::vector<std::string_view> names;
  for (const Subcommand* part : kParts) names.push_back(short_name(part));
  return usage_error(kPlanSubcommand, fmt::format("no part '{}'{}", args[0], did_you_mean(args[0], names)));
}

}  // namespace

const Subcommand kPlanSubcommand = {
    .name = "plan",
    .summary = "Work out what a framework would do: stages, groups, buckets, schedules, whole programs.",
    .usage = "plan PART [ARGUMENT]...",
    .run = run_plan,
};

}  // namespace lockstep
