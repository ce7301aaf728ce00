// `lockstep plan buckets`: which gradients are reduced together, for torch DDP, Megatron and DeepSpeed.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/nearest.h"
#include "cli/plan_buckets_of.h"
#include "cli/plan_groups_of.h"
#include "cli/plan_parts.h"

namespace lockstep {
namespace {

struct Framework {
  std::string_view name;
  int (*run)(const Subcommand& subcommand, std::span<const std::string_view> args);
};

constexpr std::array kFrameworks = {
    Framework{"ddp", plan_buckets_of_ddp}, Framework{"torch", plan_buckets_of_ddp},
    Framework{"megatron", plan_buckets_of_megatron}, Framework{"deepspeed", plan_buckets_of_deepspeed}};

int run_plan_buckets(std::span<const std::string_view> args) {
  const auto [name, rest] = take_framework(args);
  const auto found = std::ranges::find(kFrameworks, name, &Framework::name);
  if (found != kFrameworks.end()) return found->run(kPlanBucketsSubcommand, rest);
  if (name.empty()) {  // Megatron's stages and bucket sizes are nobody else's
    const auto given = [&rest](std::string_view flag) { return std::ranges::find(rest, flag) != rest.end(); };
    if (given("--stage") || given("--distributed-optimizer"))
      return plan_buckets_of_megatron(kPlanBucketsSubcommand, rest);
    if (given("--limits-bytes") || given("--order")) return plan_buckets_of_ddp(kPlanBucketsSubcommand, rest);
  }
  std::vector<std::string_view> names;
  for (const Framework& framework : kFrameworks) names.push_back(framework.name);
  return usage_error(kPlanBucketsSubcommand, fmt::format("--framework takes one of {}{}",
                                                         fmt::join(names, ", "), did_you_mean(name, names)));
}

}  // namespace

Result<std::vector<std::uint64_t>> element_counts(const PlanArguments& arguments, std::string_view key) {
  const auto given = arguments.integers(key);
  if (given.size() > plan::kMaxTensors)
    return Error{ErrorCode::kMalformed, fmt::format("{}: more than {} tensors", key, plan::kMaxTensors)};
  std::vector<std::uint64_t> counts;
  for (const std::int64_t count : given) {
    if (count < 0 || static_cast<std::uint64_t>(count) > plan::kMaxElements)
      return Error{ErrorCode::kMalformed, fmt::format("{}: {} is no number of elements", key, count)};
    counts.push_back(static_cast<std::uint64_t>(count));
  }
  return counts;
}

const Subcommand kPlanBucketsSubcommand = {
    .name = "plan buckets",
    .summary = "The buckets in which gradients are reduced.",
    .usage =
        "plan buckets --framework ddp|megatron|deepspeed [PARAMETER]...; --help with a framework lists its "
        "parameters",
    .run = run_plan_buckets,
};

}  // namespace lockstep
