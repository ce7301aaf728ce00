// `lockstep conform`: a recorded run against its plan.
#include "plan/conform.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/gate_report.h"
#include "cli/output.h"
#include "cli/plan_file.h"
#include "cli/subcommand.h"
#include "read/load.h"
#include "report/json.h"
#include "report/printable.h"
#include "report/text.h"

namespace lockstep {
namespace {

using plan::Conformance;

std::string call_text(const Job& job, const Operation* operation) {
  if (operation == nullptr) return "no call";
  std::string text =
      fmt::format("{} on {}", op_name(operation->kind), job.communicator(operation->comm).name);
  if (!operation->count.is_none())
    text += fmt::format(" {}[{}]", job.datatype(operation->datatype), job.count_text(operation->count));
  if (operation->peer >= 0)
    text += fmt::format(" {} {}", op_class(operation->kind) == OpClass::kCollective ? "root" : "peer",
                        operation->peer);
  const CallSite& site = job.site(operation->site);
  if (!site.frames.empty()) text += fmt::format(" ({})", site.frames[0].function);
  const std::string& label = job.extra(*operation).label;
  if (!label.empty()) text += fmt::format(", {}", label);
  return text;
}

/// The class of the first part that differs.
std::string_view class_of(const Job& recorded, const plan::Difference& difference) {
  if (difference.planned == nullptr) return "extra_call";
  const Job& planned = difference.expansion->job;
  if (difference.recorded->kind != difference.planned->kind) return "kind_differs";
  if (recorded.datatype(difference.recorded->datatype) != planned.datatype(difference.planned->datatype))
    return "datatype_differs";
  if (recorded.count_text(difference.recorded->count) != planned.count_text(difference.planned->count))
    return "size_differs";
  if (difference.recorded->peer != difference.planned->peer) return "root_differs";
  return "wrong_communicator";
}

Finding finding_of(const Job& recorded, const plan::Difference& difference) {
  Finding finding;
  finding.verdict = Verdict::kMismatch;
  finding.finding_class = class_of(recorded, difference);
  finding.severity = Severity::kContractViolation;
  finding.title = fmt::format("rank {} leaves its plan in step {}, call {}", difference.rank,
                              difference.iteration, difference.position);
  finding.divergent_ranks = {difference.rank};
  finding.divergent_meaning = DivergentMeaning::kMinority;
  finding.explanation =
      fmt::format("the record has {}, where the plan has {}", call_text(recorded, difference.recorded),
                  call_text(difference.expansion->job, difference.planned));
  finding.fix = "run what was planned, or bring the plan up to date and gate it again";
  const Program& program = recorded.program(recorded.program_of_rank(difference.rank));
  finding.evidence = {{recorded.source(program.source), difference.recorded->line}};
  return finding;
}

/// "the record of rank 0 ends in step 0 at call 14, all_reduce on model ..., before all_gather on data ..."
std::string end_text(const plan::RankConformance& rank) {
  const Job& planned = rank.expansion->job;
  return fmt::format("the record of rank {} ends inside step {}, after {} calls of it: at {}{}", rank.rank, rank.iterations,
                     rank.partial, call_text(planned, rank.last),
                     rank.next == nullptr ? "" : fmt::format("; the plan goes on with {}", call_text(planned, rank.next)));
}

/// What gate says against the plan: a record that ends inside a step may be one of a run that could not go on.
std::optional<Finding> finding_against(const std::string& plan_path) {
  const auto gate = gate_report(std::span(&plan_path, 1));
  if (!gate || gate->findings.empty() || gate->findings.front().severity > Severity::kContractViolation) return std::nullopt;
  Finding finding = gate->findings.front();
  finding.title = fmt::format("the plan itself cannot be run to its end: {}: {}", verdict_name(finding.verdict), finding.title);
  // It is about the plan, and no proof of what became of this run.
  finding.severity = Severity::kNote;
  finding.counts.clear();
  return finding;
}

/// `planned` is what is wrong with the plan itself, where it was asked for.
Report report_of(const Job& recorded, const plan::ConformResult& result, const std::optional<Finding>& planned) {
  Report report;
  report.run.name = recorded.name();
  for (const plan::Difference& difference : result.differences) {
    constexpr std::size_t kMostFindings = 8;
    if (report.findings.size() == kMostFindings) break;
    report.findings.push_back(finding_of(recorded, difference));
  }
  for (const Program& program : recorded.programs()) report.input_quality.ranks_seen.push_back(program.rank);
  report.input_quality.ranks_expected = result.ranks.size();
  report.input_quality.complete = recorded.quality().complete;
  report.input_quality.warnings = recorded.quality().warnings;
  std::size_t steps = SIZE_MAX;
  std::size_t calls = 0;
  bool cut = false;
  for (const plan::RankConformance& rank : result.ranks) {
    cut = cut || rank.partial > 0;
    steps = std::min(steps, rank.iterations);
    calls += rank.calls;
    if (rank.expansion != nullptr && result.differences.empty()) report.input_quality.warnings.push_back(end_text(rank));
    if (rank.unclaimed_after > 0)
      report.input_quality.warnings.push_back(fmt::format(
          "the plan says nothing about the last {} calls of rank {}", rank.unclaimed_after, rank.rank));
  }
  if (planned) report.findings.push_back(*planned);
  switch (result.conformance) {
    case Conformance::kConforms:
      // A record that ends inside a step says nothing about whether the job could have gone on.
      report.verdict = cut ? Verdict::kInsufficient : Verdict::kConsistent;
      if (cut) report.next_evidence = {"lockstep check on the record says why the step did not end"};
      report.summary = fmt::format("the record does what the plan says: {} whole steps, {} calls of {} ranks",
                                   steps, calls, result.ranks.size());
      break;
    case Conformance::kDiffers:
      report.verdict = Verdict::kMismatch;
      report.action = Action::kFixCode;
      break;
    case Conformance::kInsufficient:
      report.verdict = Verdict::kInsufficient;
      if (calls > 0 && cut) {
        report.summary = fmt::format("the record follows the plan as far as it goes, and ends inside step {}: {} calls of {} ranks",
                                     steps, calls, result.ranks.size());
        report.next_evidence = {planned ? "mend the plan and what it describes; lockstep check on the record says where the run stands"
                                        : "lockstep check on the record says why the step did not end; record at least one whole "
                                          "training step on every rank"};
        break;
      }
      report.summary = "no training step of the plan is found in the record of every rank";
      report.next_evidence = {"record at least one whole training step on every rank"};
      break;
  }
  return report;
}

/// A record is cut where some rank's ends inside a step. It shows nothing yet where no step was ended, and nothing that
/// can be relied on where the plan cannot be ended either.
std::optional<Finding> judge_cut_record(const std::string& plan_path, plan::ConformResult& result) {
  if (result.conformance != Conformance::kConforms) return std::nullopt;
  const bool cut = std::ranges::any_of(result.ranks, [](const auto& rank) { return rank.partial > 0; });
  if (!cut) return std::nullopt;
  auto planned = finding_against(plan_path);
  const bool some_have_no_step = std::ranges::any_of(result.ranks, [](const auto& rank) { return rank.iterations == 0; });
  if (planned || some_have_no_step) result.conformance = Conformance::kInsufficient;
  return planned;
}

int run_conform(std::span<const std::string_view> args) {
  std::vector<std::string> inputs;
  std::string plan_path;
  std::string format = "text";
  CLI::App app;
  app.add_option("INPUT", inputs, "files or directories with evidence of one run")->required();
  app.add_option("--plan", plan_path, "the plan of the run")->required();
  app.add_option("--format", format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  if (const auto done = parse_arguments(app, kConformSubcommand, args)) return *done;

  const auto plan = load_plan(plan_path);
  if (!plan) return input_error(plan.error());
  std::vector<plan::Expansion> iterations;
  for (const auto iteration : {plan::Iteration::kFirst, plan::Iteration::kSecond, plan::Iteration::kSteady,
                               plan::Iteration::kSkipped}) {
    if (iteration == plan::Iteration::kSkipped && !plan->optimizer.loss_scale) continue;
    auto expansion = plan::expand(*plan, iteration);
    if (!expansion)
      return input_error(
          {expansion.error().code, fmt::format("{}: {}", plan_path, expansion.error().message)});
    iterations.push_back(*std::move(expansion));
  }
  const auto recorded = load_job(inputs);
  if (!recorded) return input_error(recorded.error());
  plan::ConformResult result = plan::conform(*recorded, iterations);
  const std::optional<Finding> planned = judge_cut_record(plan_path, result);
  const Report report = report_of(*recorded, result, planned);
  std::string text;
  if (format == "json") {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(report_json(report));
    json["conformance"] = conformance_name(result.conformance);
    text = json.dump(2, ' ', true) + '\n';
  } else {
    text = report_text(report, {.colour = stdout_takes_colour()});
    text += fmt::format("conformance: {}\n", conformance_name(result.conformance));
  }
  if (!write_stdout(text)) return kExitInternal;
  switch (result.conformance) {
    case Conformance::kConforms:
      return kExitConsistent;
    case Conformance::kDiffers:
      return kExitFindings;
    case Conformance::kInsufficient:
      return kExitInsufficient;
  }
  return kExitInternal;
}

}  // namespace

const Subcommand kConformSubcommand = {
    .name = "conform",
    .summary = "Say whether a recorded run does what its plan says, and where it first does not.",
    .usage = "conform INPUT... --plan PLAN [--format text|json]",
    .run = run_conform,
};

}  // namespace lockstep
