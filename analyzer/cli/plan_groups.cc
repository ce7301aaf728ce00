// `lockstep plan groups`: the process groups that a framework makes of a layout, in order of creation, as the
// golden files hold them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/nearest.h"
#include "cli/plan_groups_of.h"
#include "cli/plan_parts.h"

namespace lockstep {
namespace {

struct Framework {
  std::string_view name;
  int (*run)(const Subcommand& subcommand, std::span<const std::string_view> args);
};

constexpr std::array kFrameworks = {Framework{"megatron", plan_groups_of_megatron},
                                    Framework{"deepspeed", plan_groups_of_deepspeed},
                                    Framework{"device-mesh", plan_groups_of_device_mesh}};

int run_plan_groups(std::span<const std::string_view> args) {
  const auto [name, rest] = take_framework(args);
  const auto found = std::ranges::find(kFrameworks, name, &Framework::name);
  if (found != kFrameworks.end()) return found->run(kPlanGroupsSubcommand, rest);
  std::vector<std::string_view> names;
  for (const Framework& framework : kFrameworks) names.push_back(framework.name);
  return usage_error(kPlanGroupsSubcommand, fmt::format("--framework takes one of {}{}",
                                                        fmt::join(names, ", "), did_you_mean(name, names)));
}

}  // namespace

FrameworkChoice take_framework(std::span<const std::string_view> args) {
  constexpr std::string_view kFlag = "--framework";
  FrameworkChoice choice;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == kFlag && i + 1 < args.size())
      choice.name = args[++i];
    else if (args[i].starts_with(kFlag) && args[i].substr(kFlag.size()).starts_with('='))
      choice.name = args[i].substr(kFlag.size() + 1);
    else
      choice.rest_of_args.push_back(args[i]);
  }
  return choice;
}

PlanJson framework_error(const Error& error) { return error.message; }

bool is_framework_error(const Error& error) {
  const std::string_view text = error.message;
  const std::string_view name = text.substr(0, text.find(':'));
  return name.size() < text.size() && name.ends_with("Error");
}

const Subcommand kPlanGroupsSubcommand = {
    .name = "plan groups",
    .summary = "The process groups of a layout, in the order in which they are made.",
    .usage =
        "plan groups --framework megatron|deepspeed|device-mesh [PARAMETER]...; --help with a framework "
        "lists its parameters",
    .run = run_plan_groups,
};

}  // namespace lockstep
