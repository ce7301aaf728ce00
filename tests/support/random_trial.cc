// See the header.
#include "support/random_trial.h"

#include "diagnose/diagnose.h"
#include "support/evidence.h"
#include "support/oracle.h"

namespace lockstep::testing {

namespace {

std::string accusation(const JobSketch& job, std::string_view form, bool has_ended) {
  const Report report = diagnose(build_job(job));
  for (const Finding& finding : report.findings) {
    if (finding.severity >= Severity::kUnsafe) continue;
    return std::string(form) + ": " + std::string(severity_name(finding.severity)) + " " + finding.finding_class + ": " +
           finding.title;
  }
  const bool open = report.verdict == Verdict::kInsufficient || report.verdict == Verdict::kOtherCause;
  if (report.verdict == Verdict::kConsistent || (open && !has_ended)) return "";
  return std::string(form) + ": verdict " + std::string(verdict_name(report.verdict));
}

}  // namespace

std::string false_accusation(const JobSketch& correct, std::uint64_t seed) {
  Random random(seed ^ 0x11feU);
  std::string found = accusation(correct, "plan", true);
  if (found.empty()) found = accusation(as_recorded(correct), "record", true);
  if (found.empty()) found = accusation(live_snapshot(correct, random), "snapshot", false);
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
