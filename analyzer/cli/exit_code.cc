// What a report means for a script.
#include "cli/exit_code.h"

#include <algorithm>

namespace lockstep {

ExitCode exit_code(const Report& report, Severity fail_on) {
  // Severities are listed in falling order.
  const auto fails = [fail_on](const Finding& finding) {
    return finding.severity <= fail_on && finding.verdict != Verdict::kInsufficient &&
           finding.verdict != Verdict::kConsistent;
  };
  if (report.verdict == Verdict::kOtherCause || std::ranges::any_of(report.findings, fails))
    return kExitFindings;
  return report.verdict == Verdict::kInsufficient ? kExitInsufficient : kExitConsistent;
}

}  // namespace lockstep
