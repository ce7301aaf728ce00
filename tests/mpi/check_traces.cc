#include "check_traces.h"

#include <optional>
#include <vector>

#include "diagnose/diagnose.h"
#include "read/load.h"
#include "report/text.h"

namespace lockstep::shim_test {
namespace {

Result<Report> check(const std::string& directory) {
  const std::vector<std::string> paths{directory};
  const Result<Job> job = load_job(paths);
  if (!job) return job.error();
  return diagnose(*job);
}

}  // namespace

std::string verdict_on(const std::string& directory) {
  const Result<Report> report = check(directory);
  if (!report) return report.error().message;
  std::string text(verdict_name(report->verdict));
  if (const Finding* leading = leading_finding(*report)) text += " " + leading->finding_class;
  return text;
}

std::string report_on(const std::string& directory) {
  const Result<Report> report = check(directory);
  return report ? report_text(*report, {}) : report.error().message;
}

}  // namespace lockstep::shim_test
