// What identifies a finding across runs of the tool: for forms of report that are compared with earlier ones.
#pragma once

#include <string>

#include "diagnose/finding.h"

namespace lockstep {

/// 16 hexadecimal digits over class, communicator, kind of call and the code that makes it; not over ranks,
/// counts and positions, which change with the size of a job.
std::string finding_fingerprint(const Finding& finding);

}  // namespace lockstep
