// The hosts to look at, for scripts that drain nodes.
#pragma once

#include <string>

#include "diagnose/finding.h"

namespace lockstep {

/// One host a line: those whose own evidence is the cause. Nothing for any other report: a finding about calls names no node.
std::string report_hosts(const Report& report);

}  // namespace lockstep
