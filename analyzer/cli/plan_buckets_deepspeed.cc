// `lockstep plan buckets --framework deepspeed`: reductions of ZeRO-0, 1 and 2, and the flat optimizer group
// behind them.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/plan_buckets_of.h"

namespace lockstep {
namespace {

constexpr PlanParameter kParameters[] = {
    {"numels", ParameterKind::kIntegers, "elements of each tensor, in order of registration"},
    {"zero_stage", ParameterKind::kInteger, "0, 1 or 2; default 1"},
    {"reduce_bucket_size", ParameterKind::kInteger, "elements, default 500000000"},
    {"dp", ParameterKind::kInteger, "data-parallel size, default 1"},
};

constexpr std::int64_t kReduceBucketSize = 500'000'000;

Result<PlanJson> buckets_json(const PlanArguments& arguments) {
  auto numels = element_counts(arguments, "numels");
  if (!numels) return numels.error();
  const std::int64_t stage = arguments.integer("zero_stage", 1);
  const std::int64_t size = arguments.integer("reduce_bucket_size", kReduceBucketSize);
  const std::int64_t dp = arguments.integer("dp", 1);
  if (stage < 0 || stage > 2)
    return Error{ErrorCode::kMalformed, fmt::format("zero_stage must be 0, 1 or 2, not {}", stage)};
  if (size < 1 || dp < 1 || dp > (1 << 20))
    return Error{ErrorCode::kMalformed, "reduce_bucket_size or dp is out of range"};
  const std::uint64_t total = std::accumulate(numels->begin(), numels->end(), std::uint64_t{0});
  PlanJson out{{"numels", *numels}, {"zero_stage", stage}, {"reduce_bucket_size", size}, {"dp", dp}};
  const auto limit = static_cast<std::uint64_t>(size);
  if (stage == 0) {
    out["buckets"] = plan::zero0_buckets(*numels, limit);
    return out;
  }
  std::ranges::reverse(*numels);  // gradients come from the last tensor to the first
  out["buckets"] = plan::zero_reduce_buckets(*numels, limit);
  out["padded_group"] = plan::zero_padded_elements(total, static_cast<std::uint64_t>(dp));
  return out;
}

}  // namespace

int plan_buckets_of_deepspeed(const Subcommand& subcommand, std::span<const std::string_view> args) {
  PlanArguments arguments;
  if (const auto done = parse_plan_arguments(subcommand, kParameters, args, arguments)) return *done;
  if (!arguments.has("numels")) return usage_error(subcommand, "--numels is needed");
  return print_plan_json(buckets_json(arguments));
}

}  // namespace lockstep
