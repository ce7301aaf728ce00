// Runs CLI11 over the arguments of a subcommand; help goes to stdout, complaints to stderr.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "cli/subcommand.h"

namespace CLI {
class App;
}

namespace lockstep {

/// Fills the variables bound to `app`. An exit code: nothing is left to do (help was asked for, or the
/// arguments are wrong).
std::optional<int> parse_arguments(CLI::App& app, const Subcommand& subcommand,
                                   std::span<const std::string_view> args);

}  // namespace lockstep
