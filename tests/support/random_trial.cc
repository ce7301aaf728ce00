// See the header.
#include "support/random_trial.h"

#include "diagnose/diagnose.h"
#include "support/oracle.h"

namespace lockstep::testing {

std::string false_accusation(const JobSketch& correct) {
  const Report report = diagnose(build_job(correct));
  for (const Finding& finding : report.findings) {
    if (finding.severity < Severity::kUnsafe) {
      return std::string(severity_name(finding.severity)) + " " + finding.finding_class + ": " + finding.title;
    }
  }
  if (report.verdict != Verdict::kConsistent) return "verdict " + std::string(verdict_name(report.verdict));
  return "";
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
