// Reports as JUnit XML.
#include "report/junit.h"

#include <fmt/format.h>

#include "report/fingerprint.h"
#include "report/printable.h"

namespace lockstep {
namespace {

/// U+FFFE and U+FFFF, which XML 1.0 cannot hold; printable() leaves them, as UTF-8, but no control characters.
void replace_noncharacters(std::string& text) {
  for (std::size_t at = 0; (at = text.find("\xEF\xBF", at)) != std::string::npos; at += 3)
    if (at + 2 < text.size() && static_cast<unsigned char>(text[at + 2]) >= 0xBE) text[at + 2] = '\xBD';
}

std::string escaped(std::string_view raw) {
  std::string text = printable(raw);
  replace_noncharacters(text);
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

bool is_failure(const Finding& finding) { return finding.severity <= Severity::kPotential; }

}  // namespace

std::string report_junit(const Report& report) {
  const std::string suite = escaped(report.run.name.empty() ? "lockstep" : report.run.name);
  std::string cases;
  std::size_t tests = 0;
  std::size_t failures = 0;
  for (const Finding& finding : report.findings) {
    ++tests;
    cases += fmt::format("    <testcase classname=\"{}\" name=\"{} {}\">", suite,
                         escaped(finding.finding_class), finding_fingerprint(finding));
    if (is_failure(finding)) {
      ++failures;
      cases +=
          fmt::format("\n      <failure type=\"{}\" message=\"{}\">{}{}</failure>\n    ",
                      verdict_name(finding.verdict), escaped(finding.title), escaped(finding.explanation),
                      finding.fix.empty() ? "" : fmt::format("\nFix: {}", escaped(finding.fix)));
    }
    cases += "</testcase>\n";
  }
  const bool undecided = report.verdict == Verdict::kInsufficient || report.verdict == Verdict::kOtherCause;
  if (tests == 0) {
    ++tests;
    cases = fmt::format("    <testcase classname=\"{}\" name=\"call order\">", suite);
    if (undecided) cases += fmt::format("<skipped message=\"{}\"/>", escaped(report.summary));
    cases += "</testcase>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{0}\" failures=\"{1}\">\n"
      "  <testsuite name=\"{2}\" tests=\"{0}\" failures=\"{1}\" errors=\"0\" skipped=\"{3}\">\n{4}  "
      "</testsuite>\n</testsuites>\n",
      tests, failures, suite, report.findings.empty() && undecided ? 1 : 0, cases);
}

}  // namespace lockstep
