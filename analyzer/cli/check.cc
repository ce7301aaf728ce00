// `lockstep check`: from evidence to a report and an exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/arguments.h"
#include "cli/exit_code.h"
#include "cli/nearest.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/report_output.h"
#include "cli/subcommand.h"
#include "diagnose/diagnose.h"
#include "read/load.h"

namespace lockstep {
namespace {

constexpr double kLongestInterval = 3600;
constexpr unsigned kMostJobs = 256;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

int run_check(std::span<const std::string_view> args) {
  std::vector<std::string> inputs;
  ReportOutput output;
  std::string fail_on_name{severity_name(Severity::kContractViolation)};
  bool exit_zero = false;
  bool no_symbols = false;
  double interval_s = 2;
  unsigned jobs = 1;

  CLI::App app;
  app.add_option("INPUT", inputs, "files or directories with evidence of one run; FILE=RANK tells the rank of a dump, log or stack; - is standard input")->required();
  output.add_options(app);
  app.add_option("--fail-on", fail_on_name,
                 fmt::format("lowest severity that gives exit code 1: {}", fmt::join(severity_names(), ", ")))
      ->capture_default_str();
  app.add_option("--interval", interval_s,
                 "seconds between the two looks at a job whose processes are alive on this host; 0: one look")
      ->capture_default_str();
  app.add_option("--jobs", jobs, "threads that read files, where each can be read by itself")->capture_default_str();
  app.add_flag("--no-symbols", no_symbols, "do not look native call sites up in the program files that traces name");
  app.add_flag("--exit-zero", exit_zero, "exit with 0 whatever the report says");
  if (const auto done = parse_arguments(app, kCheckSubcommand, args)) return *done;

  const auto destinations = output.destinations();
  if (!destinations) return usage_error(kCheckSubcommand, destinations.error().message);
  const auto fail_on = severity_from_name(fail_on_name);
  if (!fail_on)
    return usage_error(kCheckSubcommand, fmt::format("unknown severity '{}'{}", fail_on_name,
                                                     did_you_mean(fail_on_name, severity_names())));

  if (interval_s < 0 || interval_s > kLongestInterval)
    return usage_error(kCheckSubcommand, fmt::format("--interval takes 0 to {:.0f} seconds", kLongestInterval));

  ProgressLine progress;
  const LoadOptions load_options{.jobs = std::min(jobs, kMostJobs), .progress = progress.listener(), .native_lookup = !no_symbols};
  Result<LoadedEvidence> evidence = load_evidence(inputs, load_options);
  progress.clear();
  if (!evidence) return input_error(evidence.error());
  std::optional<Observation> seen;
  if (is_live(evidence->job) && interval_s > 0) {
    const Look first(evidence->job);
    std::this_thread::sleep_for(std::chrono::duration<double>(interval_s));
    evidence = load_evidence(inputs, load_options);
    if (!evidence) return input_error(evidence.error());
    if (is_live(evidence->job)) seen = first.compare(Look(evidence->job), evidence->job, seconds_since_1970());
  }
  const Report report = diagnose(evidence->job, seen, evidence->reported);
  if (!write_report(report, *destinations)) return kExitInternal;
  return exit_zero ? kExitConsistent : exit_code(report, *fail_on);
}

}  // namespace

const Subcommand kCheckSubcommand = {
    .name = "check",
    .summary = "Say whether all ranks made the same calls in an order that can finish, and if not, why.",
    .usage = "check [--format FORMAT] [--output FORMAT=FILE]... [--fail-on SEVERITY] [--interval SECONDS] [--jobs N] [--no-symbols] [--exit-zero] INPUT...",
    .run = run_check,
};

}  // namespace lockstep
