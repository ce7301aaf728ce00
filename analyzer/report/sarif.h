// Reports as SARIF 2.1.0, for code-scanning services (https://docs.oasis-open.org/sarif/sarif/v2.1.0).
#pragma once

#include <string>

#include "diagnose/finding.h"

namespace lockstep {

/// One result a finding: its rule is the class, its locations are the evidence (at most 100), its fingerprint
/// is stable.
std::string report_sarif(const Report& report);

}  // namespace lockstep
