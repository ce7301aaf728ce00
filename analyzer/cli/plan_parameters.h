// Parameters of the parts of `lockstep plan`: flags named like the keys of the golden files, values kept as
// JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/subcommand.h"

namespace lockstep {

using PlanJson = nlohmann::ordered_json;

enum class ParameterKind {
  kInteger,
  kBoolean,  ///< --flag, --flag true
  kText,
  kIntegers,  ///< 0,1,2 or [0,1,2]
  kTexts,     ///< pp,dp or ["pp","dp"]
  kJson,      ///< anything else, as JSON; an object given as --args holds parameters itself
};

/// A flag --bucket-size for the key "bucket_size"; "null" is a value of every kind.
struct PlanParameter {
  std::string_view key;
  ParameterKind kind = ParameterKind::kInteger;
  std::string_view help;
};

/// The parameters that were given, by key, in the order given in `parameters`.
struct PlanArguments {
  PlanJson values = PlanJson::object();

  bool has(std::string_view key) const { return values.contains(key) && !values[key].is_null(); }
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  bool boolean(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  /// Those of `keys` that were given.
  PlanJson only(std::span<const std::string_view> keys) const;
};

/// Fills `arguments`; an exit code: nothing is left to do (see parse_arguments).
std::optional<int> parse_plan_arguments(const Subcommand& subcommand,
                                        std::span<const PlanParameter> parameters,
                                        std::span<const std::string_view> args, PlanArguments& arguments);

/// One line of JSON on standard output, or the error on stderr.
int print_plan_json(const Result<PlanJson>& result);

}  // namespace lockstep
