// See the header.
#include "support/random_trial.h"

#include <algorithm>

#include "diagnose/diagnose.h"
#include "support/evidence.h"
#include "support/oracle.h"

namespace lockstep::testing {

namespace {

std::string accusation(const JobSketch& job, std::string_view form) {
  const Report report = diagnose(build_job(job));
  for (const Finding& finding : report.findings) {
    if (finding.severity >= Severity::kUnsafe) continue;
    return std::string(form) + ": " + std::string(severity_name(finding.severity)) + " " +
           finding.finding_class + ": " + finding.title;
  }
  // Where a rank has not ended nothing is proven, and the report must not say that it is.
  const bool all_ended =
      std::ranges::all_of(job.ends, [](ProgramEnd end) { return end.kind == EndKind::kExited; });
  const bool open = report.verdict == Verdict::kInsufficient || report.verdict == Verdict::kOtherCause;
  if (all_ended ? report.verdict == Verdict::kConsistent : open) return "";
  return std::string(form) + ": verdict " + std::string(verdict_name(report.verdict));
}

}  // namespace

std::string false_accusation(const JobSketch& correct, std::uint64_t seed) {
  Random random(seed ^ 0x11feU);
  std::string found = accusation(correct, "plan");
  if (found.empty()) found = accusation(as_recorded(correct), "record");
  if (found.empty()) found = accusation(live_snapshot(correct, random), "snapshot");
  return found;
}

std::optional<FaultedJob> draw_wrong_job(const JobSketch& correct, std::uint64_t seed) {
  Random random(seed ^ 0xfa17U);
  for (int draw = 0; draw < 100; ++draw) {
    FaultedJob faulted{.job = correct};
    const std::optional<Fault> fault = inject_fault(faulted.job, random);
    if (!fault) continue;
    const OracleVerdict verdict = ask_oracle(build_job(faulted.job));
    if (!verdict.wrong) continue;
    faulted.fault = *fault;
    faulted.reason = verdict.reason;
    return faulted;
  }
  return std::nullopt;
}

}  // namespace lockstep::testing
