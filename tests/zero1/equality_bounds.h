// How far a pipeline run may be from plain training, and why.
#pragma once

#include <cmath>

#include "config.h"

namespace zero1 {

constexpr double kDoubleBound = 1e-10;
constexpr double kSingleBound = 1e-5;  // after 20 steps

/// Mixed precision: placeholder until measured
inline double mixed_bound(const Config&) { return 1; }

}  // namespace zero1
