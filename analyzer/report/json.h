// The report as JSON: the contract schemas/report.schema.json.
#pragma once

#include <string>

#include "diagnose/finding.h"

namespace lockstep {

/// Pretty-printed, ASCII only (control characters and anything invisible are escaped), ends with a newline.
/// Strings that are no UTF-8 get U+FFFD in place of the bad bytes.
std::string report_json(const Report& report);

}  // namespace lockstep
