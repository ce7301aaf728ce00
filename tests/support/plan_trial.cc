#include "support/plan_trial.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "cli/gate_report.h"
#include "plan/expansion.h"
#include "plan/read_plan.h"
#include "support/random_plan.h"

namespace lockstep::testing {
namespace {

SketchOp sketch_of(const Job& job, const Operation& operation) {
  SketchOp op{.kind = operation.kind, .peer = operation.peer};
  if (operation.comm != kNoComm) op.comm = static_cast<int>(to_size(operation.comm));
  op.datatype = job.datatype(operation.datatype);
  op.count = job.count_text(operation.count);
  op.redop = job.redop(operation.redop);
  op.payload = job.text(operation.payload);
  op.stream = job.text(operation.stream);
  op.handle = job.text(operation.handle);
  if (const CallSite& site = job.site(operation.site); !site.frames.empty()) op.function = site.frames[0].function;
  op.counts = job.extra(operation).counts;
  op.tag = operation.tag;
  op.launch = operation.launch;
  op.state = operation.state;
  return op;
}

}  // namespace

JobSketch sketch_of(const Job& job) {
  JobSketch sketch{.library = job.library()};
  for (const Communicator& communicator : job.communicators())
    sketch.communicators.push_back({.name = communicator.id, .members = communicator.members});
  for (const Program& program : job.programs()) {
    auto& calls = sketch.programs.emplace_back();
    for (const Operation& operation : program.operations) calls.push_back(sketch_of(job, operation));
    sketch.ends.push_back(program.end);
  }
  return sketch;
}

DrawnPlan draw_valid_plan(std::uint64_t seed, std::int64_t most_ranks) {
  Random random(seed ^ 0x91a2U);
  for (;;) {
    DrawnPlan drawn{.text = random_plan(random, {.most_ranks = most_ranks})};
    auto plan = plan::read_plan(drawn.text, "plan");
    if (!plan || !plan::expand(*plan, plan::Iteration::kFirst, plan::Ranks::kAlikeOnce)) continue;
    drawn.plan = *std::move(plan);
    return drawn;
  }
}

std::string gate_accusation(const DrawnPlan& plan, const std::string& path) {
  std::ofstream(path) << plan.text;
  const std::string inputs[] = {path};
  const auto report = gate_report(inputs);
  if (!report) return "refused: " + report.error().message;
  for (const Finding& finding : report->findings) {
    if (finding.severity >= Severity::kUnsafe) continue;
    return std::string(severity_name(finding.severity)) + " " + finding.finding_class + ": " + finding.title;
  }
  return report->verdict == Verdict::kConsistent ? "" : "verdict " + std::string(verdict_name(report->verdict));
}

std::optional<FaultedJob> draw_wrong_plan_job(const DrawnPlan& plan, std::uint64_t seed, std::size_t most_work) {
  Random random(seed ^ 0xfa17U);
  const auto iteration = std::array{plan::Iteration::kFirst, plan::Iteration::kSecond, plan::Iteration::kSteady,
                                    plan::Iteration::kSkipped}[random.below(4U)];
  const auto expansion = plan::expand(plan.plan, iteration);
  if (!expansion) return std::nullopt;
  std::size_t longest = 0;
  for (const Program& program : expansion->job.programs()) longest = std::max(longest, program.operations.size());
  if (longest * expansion->job.operation_count() > most_work) return std::nullopt;
  return draw_wrong_job(sketch_of(expansion->job), seed);
}

}  // namespace lockstep::testing
