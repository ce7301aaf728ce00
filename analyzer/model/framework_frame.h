// Which frames of a stack are not the user's own.
#pragma once

#include "model/job.h"

namespace lockstep {

/// Installed packages, Python's own library, and frameworks that are run from a checkout.
bool is_framework(const Frame& frame);

}  // namespace lockstep
