// `lockstep plan expand`: the programs of all ranks for one iteration, as Job JSON.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/plan_file.h"
#include "cli/plan_parts.h"
#include "read/job_json_writer.h"

namespace lockstep {
namespace {

int run_plan_expand(std::span<const std::string_view> args) {
  std::string path;
  std::string iteration_text = "steady";
  CLI::App app;
  app.add_option("PLAN", path, "plan file; - is standard input")->required();
  app.add_option("--iteration", iteration_text, "first, second, steady, or skipped (an overflow was found)")
      ->check(CLI::IsMember({"first", "second", "steady", "skipped"}))
      ->capture_default_str();
  if (const auto done = parse_arguments(app, kPlanExpandSubcommand, args)) return *done;

  const auto plan = load_plan(path);
  if (!plan) return input_error(plan.error());
  const auto expansion =
      plan::expand(*plan, iteration_from_name(iteration_text).value_or(plan::Iteration::kSteady));
  if (!expansion)
    return input_error({expansion.error().code, fmt::format("{}: {}", path, expansion.error().message)});
  bool written = true;
  write_job_json(expansion->job, [&](std::string_view piece) { written = written && write_stdout(piece); });
  return written ? kExitConsistent : kExitInternal;
}

}  // namespace

const Subcommand kPlanExpandSubcommand = {
    .name = "plan expand",
    .summary = "The calls of every rank in one iteration of a plan, as Job JSON.",
    .usage = "plan expand PLAN [--iteration first|second|steady|skipped]",
    .run = run_plan_expand,
};

}  // namespace lockstep
