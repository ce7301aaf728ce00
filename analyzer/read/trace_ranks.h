// Which ranks of the job a trace file is of: one, or one for each device that the process drives.
#pragma once

#include <cstdint>
#include <vector>

#include "read/trace_tables.h"

namespace lockstep {

/// One rank's part of a file.
struct RankPart {
  std::int32_t rank = -1;           ///< in the job; -1 = nothing says
  std::int32_t device = -1;         ///< where the process has several
  std::vector<bool> elsewhere{};    ///< by communicator id: of another rank of the process; empty = all are of this one
};

/// At least one. The rank is that of the launcher, or of MPI; where there is none, or several ranks share the process, the rank in the
/// largest communicator of NCCL.
std::vector<RankPart> ranks_of(const TraceTables& tables);

/// A communicator of NCCL as the files that were read know it: job rank by rank in it, -1 where no file is of that rank. Fills the
/// gaps where only one way is left to: everybody is a member, or the known ones are evenly spaced. `known` are the ranks of the job
/// that have a file, `job_ranks` how many it has (0 = not known). False where gaps stay.
bool fill_members(std::vector<std::int32_t>& members, const std::vector<std::int32_t>& known, std::int32_t job_ranks);

}  // namespace lockstep
