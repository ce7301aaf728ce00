// A report on some ranks of a plan, told of all ranks that they stand for (plan/alike.h).
#pragma once

#include "diagnose/finding.h"
#include "plan/expansion.h"

namespace lockstep {

/// Whether a report on ranks that stand for others would blame the same ranks as one on all.
bool can_tell_of_all_ranks(const plan::Expansion& expansion);

/// `report` is on `expansion.job`. Communicators get all their members, divergent ranks and suspects those that are
/// like them; the examples (operations, wait_for) stay those of the ranks that were replayed. Nothing changes where the
/// expansion has all ranks.
void tell_of_all_ranks(const plan::Expansion& expansion, Report& report);

}  // namespace lockstep
