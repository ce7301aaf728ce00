// Findings that do not fail a gate: those that the base has already, and those that were accepted.
#pragma once

#include <string>

#include "base/result.h"
#include "diagnose/finding.h"

namespace lockstep {

/// Makes notes of the findings of `report` that `before` has too, by fingerprint, and says which are gone.
void keep_new_findings(const Report& before, Report& report);

/// Makes notes of the findings that the file accepts:
///   {"suppressions": [{"fingerprint": "0123456789abcdef", "reason": "...", "expires": "2027-01-31"}]}
/// "class" may stand instead of "fingerprint". The reason is needed. Entries that have expired do not count,
/// and they are reported as are those that nothing matches. Errors name the field.
Result<bool> apply_suppressions(const std::string& path, Report& report);

}  // namespace lockstep
