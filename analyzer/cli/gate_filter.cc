// Comparison with a base, and suppression files.
#include "cli/gate_filter.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/mapped_file.h"
#include "cli/nearest.h"
#include "plan/json_fields.h"
#include "report/fingerprint.h"

namespace lockstep {
namespace {

void make_note(Finding& finding, std::string_view why) {
  finding.severity = Severity::kNote;
  finding.title += fmt::format(" ({})", why);
}

/// The verdict follows the findings that are left.
void settle(Report& report) {
  std::ranges::stable_sort(report.findings, {}, &Finding::severity);
  const bool decided =
      !report.findings.empty() && report.findings[0].severity <= Severity::kContractViolation;
  if (decided) {
    report.verdict = report.findings[0].verdict;
    return;
  }
  if (report.verdict == Verdict::kInsufficient || report.verdict == Verdict::kOtherCause) return;
  report.verdict = Verdict::kConsistent;
  report.action = Action::kNone;
  report.action_ranks.clear();
  report.action_hosts.clear();
  report.suspects.clear();
  if (report.summary.empty()) report.summary = "no new finding";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

/// A date that the calendar may have: one that is none would never come.
bool is_date(const std::string& text) {
  if (text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (i == 4 || i == 7 ? text[i] != '-' : text[i] < '0' || text[i] > '9') return false;
  const std::string month = text.substr(5, 2), day = text.substr(8);
  return month >= "01" && month <= "12" && day >= "01" && day <= "31";
}

bool says_nothing(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

}  // namespace

void keep_new_findings(const Report& before, Report& report) {
  std::set<std::string> known;
  for (const Finding& finding : before.findings) known.insert(finding_fingerprint(finding));
  std::set<std::string> now;
  for (Finding& finding : report.findings) {
    now.insert(finding_fingerprint(finding));
    if (known.contains(finding_fingerprint(finding))) make_note(finding, "the base has it too");
  }
  for (const Finding& finding : before.findings)
    if (!now.contains(finding_fingerprint(finding)))
      report.input_quality.warnings.push_back(
          fmt::format("no longer found: {} ({})", finding.title, finding.finding_class));
  settle(report);
}

Result<bool> apply_suppressions(const std::string& path, Report& report) {
  const auto file = MappedFile::open(path);
  if (!file) return file.error();
  const auto json = nlohmann::json::parse(file->contents(), nullptr, false);
  if (json.is_discarded()) return Error{ErrorCode::kMalformed, fmt::format("{}: no JSON", path)};
  if (!json.is_object())
    return Error{ErrorCode::kMalformed,
                 fmt::format(R"({}: $: must be an object: {{"suppressions": [{{"class": "...", "reason": "..."}}]}})", path)};
  std::optional<Error> error;
  plan::Fields root(json, fmt::format("{}: $", path), error);
  const auto entries = root.elements("suppressions", 10'000);
  root.end();
  for (std::size_t i = 0; i < entries.size() && !error; ++i) {
    plan::Fields fields(entries[i], root.path_of("suppressions", i), error);
    const std::string fingerprint = fields.text("fingerprint", "");
    const std::string finding_class = fields.text("class", "");
    const std::string reason = fields.text("reason", "");
    const std::string expires = fields.text("expires", "");
    fields.end();
    if (says_nothing(reason)) fields.fail(fields.path_of("reason"), "is missing");
    if (fingerprint.empty() == finding_class.empty())
      fields.fail(fields.path_of("fingerprint"), "give either this or class");
    if (!expires.empty() && !is_date(expires))
      fields.fail(fields.path_of("expires"), "must be a date, YYYY-MM-DD");
    if (error) break;
    if (!expires.empty() && expires < today()) {
      report.input_quality.warnings.push_back(
          fmt::format("{} expired on {}", fields.path_of("expires"), expires));
      continue;
    }
    bool used = false;
    for (Finding& finding : report.findings) {
      if (finding_class.empty() ? finding_fingerprint(finding) != fingerprint
                                : finding.finding_class != finding_class)
        continue;
      make_note(finding, fmt::format("accepted: {}", reason));
      used = true;
    }
    if (used) continue;
    const bool misspelt = !finding_class.empty() && find_class(finding_class) == nullptr;
    report.input_quality.warnings.push_back(misspelt
                                                ? fmt::format("{}: {}", fields.path_of("class"), no_such_class(finding_class))
                                                : fmt::format("{} matches no finding any more", root.path_of("suppressions", i)));
  }
  if (error) return *error;
  settle(report);
  return true;
}

}  // namespace lockstep
