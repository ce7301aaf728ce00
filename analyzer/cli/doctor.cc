// `lockstep doctor`: what would be recorded and what not, before anything is run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/recorder_library.h"
#include "cli/subcommand.h"
#include "doctor/checks.h"
#include "report/printable.h"
#include "report/tool.h"

namespace lockstep {
namespace {

std::string doctor_text(const std::vector<Check>& checks, std::ptrdiff_t problems) {
  std::string text = problems == 0 ? "nothing found that would not be recorded\n"
                                   : fmt::format("{} problem{}: not everything would be recorded\n", problems,
                                                 problems == 1 ? "" : "s");
  for (const Check& check : checks) {
    text += fmt::format("  {:<8} {:<14} {}\n", check_state_name(check.state), check.subject,
                        printable(check.what));
    if (!check.fix.empty()) text += fmt::format("  {:<8} {:<14} {}\n", "", "fix", printable(check.fix));
  }
  return text;
}

std::string doctor_json(const std::vector<Check>& checks, std::ptrdiff_t problems) {
  nlohmann::ordered_json json{{"schema", "lockstep-doctor/1"}, {"tool", tool_name()}, {"problems", problems}};
  json["checks"] = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    nlohmann::ordered_json row{
        {"state", check_state_name(check.state)}, {"subject", check.subject}, {"what", check.what}};
    if (!check.fix.empty()) row["fix"] = check.fix;
    json["checks"].push_back(std::move(row));
  }
  // Paths may hold any bytes.
  return json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int run_doctor(std::span<const std::string_view> args) {
  const auto dashes = std::ranges::find(args, "--");
  const auto own = static_cast<std::size_t>(dashes - args.begin());
  std::span<const std::string_view> command = args.subspan(std::min(own + 1, args.size()));
  std::string format = "text";
  std::vector<std::string> misplaced;
  CLI::App app;
  app.add_option("CMD", misplaced, "what would be run, with its arguments, after --");
  app.add_option("--format", format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.footer(
      "CMD is looked at, not run. Exit code 0: nothing was found that would not be recorded; 1: something "
      "would not be;\n"
      "2: wrong usage.");
  if (const auto done = parse_arguments(app, kDoctorSubcommand, args.first(own))) return *done;
  if (!misplaced.empty()) return usage_error(kDoctorSubcommand, "the command goes after --");

  const std::vector<Check> checks = check_recording(find_recorder_library(), command);
  const auto problems = std::ranges::count(checks, CheckState::kProblem, &Check::state);
  if (!write_stdout(format == "json" ? doctor_json(checks, problems) : doctor_text(checks, problems)))
    return kExitInternal;
  return problems == 0 ? kExitConsistent : kExitFindings;
}

}  // namespace

const Subcommand kDoctorSubcommand = {
    .name = "doctor",
    .summary = "Say what of a command would be recorded and what not, without running it.",
    .usage = "doctor [--format text|json] [-- CMD [ARGUMENT]...]",
    .run = run_doctor,
};

}  // namespace lockstep
