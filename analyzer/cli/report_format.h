// The forms in which a report can be had; a new one is a row of the table in report_format.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.h"

namespace lockstep {

struct ReportFormat {
  std::string_view name;
  /// `colour`: the reader is a terminal.
  std::string (*write)(const Report& report, bool colour);
};

std::span<const ReportFormat> report_formats();
const ReportFormat* find_report_format(std::string_view name);  ///< nullptr: no such format
std::vector<std::string_view> report_format_names();

}  // namespace lockstep
