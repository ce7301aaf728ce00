// `lockstep gate`: does the plan of a run, or the record of one, hold? A report and an exit code for
// continuous integration.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/call_changes.h"
#include "cli/exit_code.h"
#include "cli/gate_filter.h"
#include "cli/gate_report.h"
#include "cli/nearest.h"
#include "cli/output.h"
#include "cli/report_output.h"
#include "cli/subcommand.h"

namespace lockstep {
namespace {

/// Again, if ranks stood for others.
Result<bool> look_at_all_ranks(const std::vector<std::string>& inputs, Report& report, CallTotals& totals) {
  if (!totals.of_alike_ranks()) return false;
  totals = {};
  auto again = gate_report(inputs, &totals, true);
  if (!again) return again.error();
  report = *std::move(again);
  return true;
}

int run_gate(std::span<const std::string_view> args) {
  std::vector<std::string> inputs;
  ReportOutput output;
  std::string fail_on_name{severity_name(Severity::kPotential)};
  bool exit_zero = false;
  std::string base;
  std::string suppressions;
  CLI::App app;
  app.add_option("INPUT,--head", inputs, "a plan, a schedule CSV of torch pipelining, or evidence of one run as lockstep check reads it");
  app.add_option("--base", base, "an earlier plan, schedule or run: what it has already is no new finding, and changes in calls are listed");
  app.add_option("--suppress", suppressions,
                 "file with findings that are accepted, each with a reason and if wanted an expiry date");
  output.add_options(app);
  app.add_option("--fail-on", fail_on_name,
                 fmt::format("lowest severity that gives exit code 1: {}", fmt::join(severity_names(), ", ")))
      ->capture_default_str();
  app.add_flag("--exit-zero", exit_zero, "exit with 0 whatever the report says");
  if (const auto done = parse_arguments(app, kGateSubcommand, args)) return *done;
  if (inputs.empty())
    return usage_error(kGateSubcommand, base.empty() ? "an input is required: a plan, a schedule CSV, or evidence of a run"
                                                     : "--base needs --head: what is compared with it");
  const auto destinations = output.destinations();
  if (!destinations) return usage_error(kGateSubcommand, destinations.error().message);
  const auto fail_on = severity_from_name(fail_on_name);
  if (!fail_on)
    return usage_error(kGateSubcommand, fmt::format("unknown severity '{}'{}", fail_on_name,
                                                    did_you_mean(fail_on_name, severity_names())));

  CallTotals totals;
  auto report = gate_report(inputs, base.empty() ? nullptr : &totals);
  if (!report) return input_error(report.error());
  std::optional<std::vector<CallChange>> changes;
  if (!base.empty()) {
    CallTotals totals_before;
    auto before = gate_report(std::vector{base}, &totals_before);
    if (!before) return input_error(before.error());
    // Where some ranks stand for others findings have other words: they are compared where that is so on both sides, or
    // on neither.
    const bool any = !report->findings.empty() || !before->findings.empty();
    if (any && totals.of_alike_ranks() != totals_before.of_alike_ranks()) {
      if (auto done = look_at_all_ranks(inputs, *report, totals); !done) return input_error(done.error());
      if (auto done = look_at_all_ranks({base}, *before, totals_before); !done) return input_error(done.error());
    }
    keep_new_findings(*before, *report);
    changes = call_changes(totals_before, totals);
    if (!changes)
      report->input_quality.warnings.push_back(
          "numbers of calls are not compared: a plan has single iterations, a run has all of its own");
  }
  if (!suppressions.empty())
    if (const auto applied = apply_suppressions(suppressions, *report); !applied)
      return input_error(applied.error());
  ReportAddition addition;
  if (changes) {
    addition.text = call_changes_text(*changes);
    addition.json = {{"call_changes", call_changes_json(*changes)}};
  }
  if (!write_report(*report, *destinations, addition)) return kExitInternal;
  return exit_zero ? kExitConsistent : exit_code(*report, *fail_on);
}

}  // namespace

const Subcommand kGateSubcommand = {
    .name = "gate",
    .summary = "Say before a run whether some rank would make a call that another does not.",
    .usage =
        "gate [--format FORMAT] [--output FORMAT=FILE]... [--fail-on SEVERITY] [--suppress FILE] "
        "[--exit-zero] (INPUT... | --base OLD --head NEW...)",
    .run = run_gate,
};

}  // namespace lockstep
