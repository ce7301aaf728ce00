// Flags named like the keys of the golden files.
#include "cli/plan_parameters.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <deque>

#include "cli/arguments.h"
#include "cli/output.h"

namespace lockstep {
namespace {

std::string flag_name(std::string_view key) {
  std::string name = "--" + std::string(key);
  std::ranges::replace(name, '_', '-');
  return name;
}

std::optional<PlanJson> integer_value(std::string_view text) {
  std::int64_t value = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), value);
  if (done.ec != std::errc{} || done.ptr != text.data() + text.size()) return std::nullopt;
  return PlanJson(value);
}

std::optional<PlanJson> json_value(std::string_view text) {
  PlanJson value = PlanJson::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

bool all_of_kind(const PlanJson& list, bool integers) {
  return list.is_array() && std::ranges::all_of(list, [integers](const PlanJson& item) {
           return integers ? item.is_number_integer() : item.is_string();
         });
}

std::optional<PlanJson> list_value(std::string_view text, bool integers) {
  if (text.starts_with('[')) {
    auto list = json_value(text);
    return list && all_of_kind(*list, integers) ? list : std::nullopt;
  }
  PlanJson list = PlanJson::array();
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const auto value = integers ? integer_value(item) : std::optional<PlanJson>(std::string(item));
    if (!value) return std::nullopt;
    list.push_back(*value);
  }
  return list;
}

std::optional<PlanJson> value_of(ParameterKind kind, std::string_view text) {
  if (text == "null" || text == "None") return PlanJson(nullptr);
  switch (kind) {
    case ParameterKind::kInteger:
      return integer_value(text);
    case ParameterKind::kBoolean:
      if (text.empty() || text == "true" || text == "True" || text == "1") return PlanJson(true);
      if (text == "false" || text == "False" || text == "0") return PlanJson(false);
      return std::nullopt;
    case ParameterKind::kText:
      return PlanJson(std::string(text));
    case ParameterKind::kIntegers:
      return list_value(text, true);
    case ParameterKind::kTexts:
      return list_value(text, false);
    case ParameterKind::kJson:
      return json_value(text);
  }
  return std::nullopt;
}

std::string_view kind_name(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::kInteger:
      return "an integer";
    case ParameterKind::kBoolean:
      return "true or false";
    case ParameterKind::kText:
      return "a text";
    case ParameterKind::kIntegers:
      return "integers (0,1,2)";
    case ParameterKind::kTexts:
      return "names (a,b,c)";
    case ParameterKind::kJson:
      return "JSON";
  }
  return "a value";
}

bool fits(ParameterKind kind, const PlanJson& value) {
  switch (kind) {
    case ParameterKind::kInteger:
      return value.is_number_integer() || value.is_null();
    case ParameterKind::kBoolean:
      return value.is_boolean() || value.is_null();
    case ParameterKind::kText:
      return value.is_string() || value.is_null();
    case ParameterKind::kIntegers:
      return all_of_kind(value, true) || value.is_null();
    case ParameterKind::kTexts:
      return all_of_kind(value, false) || value.is_null();
    case ParameterKind::kJson:
      return true;
  }
  return true;
}

/// The members of the object `args` become parameters of their own.
std::optional<std::string> unfold(PlanJson& values, std::span<const PlanParameter> parameters) {
  const auto args = values.find("args");
  if (args == values.end()) return std::nullopt;
  if (!args->is_object()) return "--args takes a JSON object";
  const PlanJson members = *args;
  values.erase("args");
  for (const auto& [key, value] : members.items()) {
    const auto known = std::ranges::find(parameters, std::string_view(key), &PlanParameter::key);
    if (known == parameters.end()) return fmt::format("--args: no parameter '{}'", key);
    if (!fits(known->kind, value)) return fmt::format("--args: '{}' takes {}", key, kind_name(known->kind));
    values[key] = value;
  }
  return std::nullopt;
}

}  // namespace

std::int64_t PlanArguments::integer(std::string_view key, std::int64_t otherwise) const {
  return has(key) ? values[key].get<std::int64_t>() : otherwise;
}
std::optional<std::int64_t> PlanArguments::integer(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return values[key].get<std::int64_t>();
}
bool PlanArguments::boolean(std::string_view key, bool otherwise) const {
  return has(key) ? values[key].get<bool>() : otherwise;
}
std::string PlanArguments::text(std::string_view key, std::string_view otherwise) const {
  return has(key) ? values[key].get<std::string>() : std::string(otherwise);
}
std::vector<std::int64_t> PlanArguments::integers(std::string_view key) const {
  return has(key) ? values[key].get<std::vector<std::int64_t>>() : std::vector<std::int64_t>{};
}
std::vector<std::string> PlanArguments::texts(std::string_view key) const {
  return has(key) ? values[key].get<std::vector<std::string>>() : std::vector<std::string>{};
}

PlanJson PlanArguments::only(std::span<const std::string_view> keys) const {
  PlanJson some = PlanJson::object();
  for (const std::string_view key : keys)
    if (values.contains(key)) some[std::string(key)] = values[key];
  return some;
}

std::optional<int> parse_plan_arguments(const Subcommand& subcommand,
                                        std::span<const PlanParameter> parameters,
                                        std::span<const std::string_view> args, PlanArguments& arguments) {
  CLI::App app;
  std::deque<std::string> texts;  // addresses stay while it grows
  std::vector<CLI::Option*> options;
  for (const PlanParameter& parameter : parameters) {
    CLI::Option* const option =
        app.add_option(flag_name(parameter.key), texts.emplace_back(), std::string(parameter.help));
    option->type_name(fmt::format("({})", kind_name(parameter.kind)));
    if (parameter.kind == ParameterKind::kBoolean) option->expected(0, 1);
    options.push_back(option);
  }
  if (const auto done = parse_arguments(app, subcommand, args)) return done;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (options[i]->count() == 0) continue;
    const auto value = value_of(parameters[i].kind, texts[i]);
    if (!value)
      return usage_error(subcommand, fmt::format("{} takes {}, not '{}'", flag_name(parameters[i].key),
                                                 kind_name(parameters[i].kind), texts[i]));
    arguments.values[std::string(parameters[i].key)] = *value;
  }
  if (const auto wrong = unfold(arguments.values, parameters)) return usage_error(subcommand, *wrong);
  return std::nullopt;
}

int print_plan_json(const Result<PlanJson>& result) {
  if (!result) return input_error(result.error());
  return write_stdout(result->dump() + '\n') ? kExitConsistent : kExitInternal;
}

}  // namespace lockstep
