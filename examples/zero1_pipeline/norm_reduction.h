// The norm of the gradients of the whole model, from the squared sums of what each rank keeps: three ways to
// reduce it.
//
// The invariant: HOW MANY COLLECTIVES A RANK MAKES ON A GROUP MAY NOT DEPEND ON ANYTHING THAT DIFFERS BETWEEN
// THE GROUP'S MEMBERS. The model-parallel group spans the stages, and stages own different layers, so
// different optimizer groups. A loop over one's own groups with a reduction inside breaks the invariant
// (per_group). A loop that only adds, and one reduction after it, keeps it (fused). So does a loop over
// groups that all stages agreed on (agreed_groups).
#pragma once

#include <memory>
#include <vector>

#include "communicator.h"
#include "config.h"
#include "exact_sum.h"

namespace zero1 {

class NormReduction {
 public:
  virtual ~NormReduction() = default;
  /// Squared norm over all replicas and stages. `squared` holds one sum for each optimizer group of this
  /// rank, over the part of it that this rank keeps, a tied weight counted on its first stage only; all are
  /// of one size, on all ranks.
  virtual double squared_norm(const std::vector<SquaredSum>& squared, const Groups& ranks) const = 0;
  /// Whether empty optimizer groups are kept, where another stage has something in them.
  virtual bool keeps_agreed_groups() const { return false; }
};

std::unique_ptr<NormReduction> make_norm_reduction(Norm norm);

/// Whether any rank met an infinity or a NaN: asked of all replicas, then of all stages, so that all skip the
/// step or none.
bool has_overflow(bool found_here, const Groups& ranks);

}  // namespace zero1
