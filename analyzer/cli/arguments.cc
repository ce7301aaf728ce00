// Runs CLI11 over the arguments of a subcommand.
#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/nearest.h"
#include "cli/output.h"

namespace lockstep {
namespace {

std::string suggestion(const CLI::App& app, std::span<const std::string_view> args) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::vector<std::string_view> words(names.begin(), names.end());
  for (const std::string_view arg : args) {
    const std::string_view typed = arg.substr(0, arg.find('='));
    if (!typed.starts_with("--") || std::ranges::find(words, typed) != words.end()) continue;
    return did_you_mean(typed, words);
  }
  return "";
}

}  // namespace

std::optional<int> parse_arguments(CLI::App& app, const Subcommand& subcommand,
                                   std::span<const std::string_view> args) {
  app.name(fmt::format("lockstep {}", subcommand.name));
  app.description(std::string(subcommand.summary));
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));  // CLI11 takes them last first
  } catch (const CLI::CallForHelp&) {
    return write_stdout(app.help()) ? kExitConsistent : kExitInternal;
  } catch (const CLI::ParseError& error) {
    return usage_error(subcommand, error.what() + suggestion(app, args));
  }
  return std::nullopt;
}

}  // namespace lockstep
