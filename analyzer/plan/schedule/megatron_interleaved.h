// Megatron-Core's interleaved 1F1B of one rank (forward_backward_pipelining_with_interleaving).
#pragma once

#include "plan/schedule/megatron.h"

namespace lockstep::plan {

/// microbatch_group_size_per_vp_stage as this rank has it.
std::int32_t group_size_of(const MegatronQuery& query, std::int32_t rank);

void write_interleaved(const MegatronQuery& query, std::int32_t rank, RankTimeline& out);

}  // namespace lockstep::plan
