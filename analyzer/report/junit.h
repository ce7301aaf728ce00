// Reports as JUnit XML, which most continuous integration shows beside test results.
#pragma once

#include <string>

#include "diagnose/finding.h"

namespace lockstep {

/// One failed case a finding that decides or may decide; one passed case where there is none.
std::string report_junit(const Report& report);

}  // namespace lockstep
