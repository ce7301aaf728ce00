// Reports as workflow commands of GitHub Actions: annotations on the lines of a change.
#pragma once

#include <string>

#include "diagnose/finding.h"

namespace lockstep {

/// One line a finding, or one notice where there is none.
std::string report_github(const Report& report);

}  // namespace lockstep
