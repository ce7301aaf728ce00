// Which trace files make up one job, and which rank each is of.
#pragma once

#include <cstdint>
#include <vector>

#include "read/job_intake.h"
#include "read/trace_ranks.h"
#include "read/trace_ring.h"
#include "read/trace_tables.h"

namespace lockstep {

struct TraceInput {
  TraceTables tables{};
  RingIndex ring{};
  RankPart part{};

  std::int32_t rank() const { return part.rank; }
};

/// Leaves one input for each rank of the newest run, sorted by rank, and warns of what it leaves out. Not empty before.
void choose_inputs(std::vector<TraceInput>& inputs, JobBuilder& builder);

}  // namespace lockstep
