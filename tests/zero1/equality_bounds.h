// How far a pipeline run may be from plain training, and why.
#pragma once

#include "pipeline_run.h"

namespace zero1 {

constexpr double kDoubleBound = 1e-10;
constexpr double kSingleBound = 1e-5;  // after 20 steps

/// Mixed precision. A number stored as bf16 is off by up to u = 2^-9 of itself.
/// - Gradients are rounded once for each micro-batch that is added to them, and once for each replica and
/// tied copy that is
///   summed; plain training rounds after each micro-batch of all replicas. Both are off by at most that many
///   u, norm-wise.
/// - Weights are compared as stored. AdamW divides a gradient by its own size, so master weights drift apart
/// far less than
///   gradients do (about rate * steps * u * roundings); but where the two masters straddle a rounding
///   boundary, what is stored differs by one unit in the last place, 2u. Four times u, norm-wise, leaves as
///   much again for the drift.
/// - The loss moves by the gradient times that, less than its own size.
inline double mixed_gradient_bound(const Config& config) {
  constexpr double kUnit = 0x1p-9;
  const int roundings = config.data * config.micro_batches + config.micro_batches + config.data + 1;
  return roundings * kUnit;
}
inline Difference mixed_bounds(const Config& config) {
  return {4 * 0x1p-9, mixed_gradient_bound(config), 4 * 0x1p-9};
}

inline Difference bounds_of(double all) { return {all, all, all}; }

}  // namespace zero1
