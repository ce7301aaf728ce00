// Tensors that go past the next stage: messages of torch's GPipe and 1F1B from a stage to one further on, and gradients
// back.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"
#include "plan/schedule/timeline.h"
#include "plan/stages.h"

namespace lockstep::plan {

struct SkipConnection {
  std::int32_t from = 0;  ///< stage
  std::int32_t to = 0;    ///< at least two stages further on
};

/// Those of the layers that lie on stages which do not follow each other.
std::vector<SkipConnection> skip_connections(const Plan& plan, const Parts& parts);

/// Puts them into the batches in which their stages talk to their neighbours anyway. With `batch_for_each_peer`, as GPipe
/// has it (_sorted_batch_p2p), a batch becomes one for each partner, in their order; 1F1B makes one batch of all.
/// Precondition: a stage a rank.
void add_skip_messages(Timeline& timeline, std::span<const SkipConnection> skips, bool batch_for_each_peer);

}  // namespace lockstep::plan
