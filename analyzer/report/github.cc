// Reports as annotations of GitHub Actions.
#include "report/github.h"

#include <fmt/format.h>

#include "report/printable.h"

namespace lockstep {
namespace {

// A property ends at a comma or colon, a message at a line's end: both are escaped as the runner unescapes
// them. What is no UTF-8, or moves text on a terminal, is spelt out.
std::string escaped(std::string_view text, bool property) {
  std::string out, plain;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (c == '%' || control || (property && (c == ',' || c == ':'))) {
      out += printable(plain);
      plain.clear();
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      plain += c;
    }
  }
  return out + printable(plain);
}

std::string_view command(Severity severity) {
  if (severity <= Severity::kContractViolation) return "error";
  return severity <= Severity::kUnsafe ? "warning" : "notice";
}

}  // namespace

std::string report_github(const Report& report) {
  std::string text;
  for (const Finding& finding : report.findings) {
    std::string properties;
    if (!finding.evidence.empty()) {
      properties = fmt::format("file={},", escaped(finding.evidence[0].file, true));
      if (finding.evidence[0].line > 0) properties += fmt::format("line={},", finding.evidence[0].line);
    }
    std::string message = finding.explanation;
    if (!finding.fix.empty()) message += "\nFix: " + finding.fix;
    text += fmt::format("::{} {}title={}::{}\n", command(finding.severity), properties,
                        escaped(fmt::format("{} ({})", finding.title, finding.finding_class), true),
                        escaped(message, false));
  }
  if (text.empty())
    text = fmt::format("::notice title=lockstep::{}\n",
                       escaped(fmt::format("{}: {}", verdict_name(report.verdict), report.summary), false));
  return text;
}

}  // namespace lockstep
