// All ranks are told the same, or all end with a message: a size that differs between ranks hangs later, far
// from its cause.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "communicator.h"

namespace zero1 {

/// Throws ConfigError on every rank alike if a value in `arguments` differs between ranks, or if `fault` is
/// not empty on any of them. `arguments` has the same names in the same order everywhere, whatever the fault.
void check_arguments(const Communicator& world,
                     const std::vector<std::pair<std::string, std::string>>& arguments,
                     const std::string& fault);

}  // namespace zero1
