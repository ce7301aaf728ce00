// The plan of a run, as `lockstep gate` and `lockstep conform` read it: what is cut how, not what follows
// from it.
#pragma once

#include <string>

#include "config.h"

namespace zero1 {

std::string plan_json(const Config& config);

}  // namespace zero1
