// The frameworks of `lockstep plan buckets`.
#pragma once

#include "cli/plan_parameters.h"
#include "plan/buckets.h"

namespace lockstep {

int plan_buckets_of_ddp(const Subcommand& subcommand, std::span<const std::string_view> args);
int plan_buckets_of_megatron(const Subcommand& subcommand, std::span<const std::string_view> args);
int plan_buckets_of_deepspeed(const Subcommand& subcommand, std::span<const std::string_view> args);

/// A list of element counts within the limits of the plan room; empty where the key was not given.
Result<std::vector<std::uint64_t>> element_counts(const PlanArguments& arguments, std::string_view key);

}  // namespace lockstep
