// Reads plan files (schemas/plan.schema.json).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "plan/plan.h"

namespace lockstep::plan {

/// Numbers that a plan may hold; more is an error that names the field.
inline constexpr std::int64_t kMaxMicroBatches = 65'536;
inline constexpr std::int64_t kMaxPlanRanks = 65'536;
inline constexpr std::size_t kMaxPlanBytes = std::size_t{64} << 20;

/// Errors are kMalformed and begin with `source` and the JSON path of the field: "plan.json:
/// $.partition.method: ...". Unknown fields are errors too: a misspelt one would otherwise be a plan for
/// another run. Fields that follow from others (the stepper from the precision and ZeRO stage, the rules from
/// the framework and its version) are filled in.
Result<Plan> read_plan(std::string_view text, std::string_view source);

}  // namespace lockstep::plan
