// What the analyzer says about the traces in a directory.
#pragma once

#include <string>

namespace lockstep::shim_test {

/// "deadlock message_order": the verdict and the class of the leading finding; "consistent" where there is none.
std::string verdict_on(const std::string& directory);

/// The report as text.
std::string report_on(const std::string& directory);

}  // namespace lockstep::shim_test
