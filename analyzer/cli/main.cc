// The command `lockstep`: finds the subcommand, and turns what nobody expected into an exit code.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/nearest.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "report/printable.h"
#include "report/tool.h"

namespace lockstep {
namespace {

constexpr std::array kSubcommands = {&kRunSubcommand,  &kRehearseSubcommand, &kDoctorSubcommand,  &kCheckSubcommand,
                                     &kShowSubcommand, &kPackSubcommand,     &kPlanSubcommand,    &kGateSubcommand,
                                     &kConformSubcommand, &kExplainSubcommand};

std::string help_text() {
  std::string text =
      "lockstep names the collective call that hangs a distributed training job.\n\nusage: lockstep COMMAND "
      "[ARGUMENT]...\n\n";
  for (const Subcommand* subcommand : kSubcommands)
    text += fmt::format("  {:<9}{}\n", subcommand->name, subcommand->summary);
  text += "  version  Print the version.\n  help     Print this, or the help of a command.\n\n";
  text +=
      "Exit codes: 0 consistent, 1 findings, 2 wrong usage, 3 nothing readable, 4 internal error or result "
      "not\n"
      "written, 5 the evidence does not decide.\n";
  return text;
}

int print(std::string_view text) { return write_stdout(text) ? kExitConsistent : kExitInternal; }

const Subcommand* find_subcommand(std::string_view name) {
  const auto found = std::ranges::find(kSubcommands, name, &Subcommand::name);
  return found == kSubcommands.end() ? nullptr : *found;
}

int unknown_command(std::string_view name) {
  std::vector<std::string_view> names{"version", "help"};
  for (const Subcommand* subcommand : kSubcommands) names.push_back(subcommand->name);
  fmt::print(stderr,
             "lockstep: no command '{}'{}\nusage: lockstep COMMAND [ARGUMENT]...; see lockstep help\n",
             printable(name), did_you_mean(name, names));
  return kExitUsage;
}

int run(std::span<const std::string_view> args) {
  if (args.empty()) {
    fmt::print(stderr, "{}", help_text());
    return kExitUsage;
  }
  const std::string_view name = args[0];
  if (name == "version" || name == "--version") return print(fmt::format("{}\n", tool_name()));
  const bool help = name == "help" || name == "--help" || name == "-h";
  if (help && args.size() == 1) return print(help_text());
  const Subcommand* subcommand = find_subcommand(help ? args[1] : name);
  if (subcommand == nullptr) return unknown_command(help ? args[1] : name);
  constexpr std::array<std::string_view, 1> kHelp{"--help"};
  return subcommand->run(help ? std::span<const std::string_view>(kHelp) : args.subspan(1));
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::ignore_broken_pipes();
  try {
    const std::vector<std::string_view> args(argv + 1, argv + std::max(argc, 1));
    return lockstep::run(args);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep: internal error: %s\n", error.what());
  } catch (...) {
    std::fputs("lockstep: internal error\n", stderr);
  }
  return lockstep::kExitInternal;
}
