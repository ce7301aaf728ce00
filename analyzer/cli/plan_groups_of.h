// The frameworks of `lockstep plan groups`; each has parameters of its own.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cli/plan_parameters.h"

namespace lockstep {

/// --framework and its value, taken out of the arguments.
struct FrameworkChoice {
  std::string_view name{};  ///< empty: not given
  std::vector<std::string_view> rest_of_args{};
};
FrameworkChoice take_framework(std::span<const std::string_view> args);

/// What the framework itself would raise is an answer, not an error of the input: "AssertionError: ...".
bool is_framework_error(const Error& error);
PlanJson framework_error(const Error& error);

int plan_groups_of_megatron(const Subcommand& subcommand, std::span<const std::string_view> args);
int plan_groups_of_deepspeed(const Subcommand& subcommand, std::span<const std::string_view> args);
int plan_groups_of_device_mesh(const Subcommand& subcommand, std::span<const std::string_view> args);

}  // namespace lockstep
