// Opens plan files for the subcommands that take one.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "plan/expansion.h"
#include "plan/plan.h"

namespace lockstep {

/// "-" is standard input.
Result<plan::Plan> load_plan(const std::string& path);

/// Whether the text is meant as a plan: it names the schema, or has a framework and layers.
bool looks_like_plan(std::string_view text);

std::optional<plan::Iteration> iteration_from_name(std::string_view name);

}  // namespace lockstep
