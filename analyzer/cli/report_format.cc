// The forms in which a report can be had.
#include "cli/report_format.h"

#include <algorithm>
#include <array>

#include "report/github.h"
#include "report/hosts.h"
#include "report/json.h"
#include "report/junit.h"
#include "report/sarif.h"
#include "report/text.h"

namespace lockstep {
namespace {

constexpr std::array kReportFormats = {
    ReportFormat{"text",
                 [](const Report& report, bool colour) { return report_text(report, {.colour = colour}); }},
    ReportFormat{"json", [](const Report& report, bool) { return report_json(report); }},
    ReportFormat{"sarif", [](const Report& report, bool) { return report_sarif(report); }},
    ReportFormat{"junit", [](const Report& report, bool) { return report_junit(report); }},
    ReportFormat{"github", [](const Report& report, bool) { return report_github(report); }},
    ReportFormat{"hosts", [](const Report& report, bool) { return report_hosts(report); }},
};

}  // namespace

std::span<const ReportFormat> report_formats() { return kReportFormats; }

const ReportFormat* find_report_format(std::string_view name) {
  const auto found = std::ranges::find(kReportFormats, name, &ReportFormat::name);
  return found == kReportFormats.end() ? nullptr : &*found;
}

std::vector<std::string_view> report_format_names() {
  std::vector<std::string_view> names;
  for (const ReportFormat& format : kReportFormats) names.push_back(format.name);
  return names;
}

}  // namespace lockstep
