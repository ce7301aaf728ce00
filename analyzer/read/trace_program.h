// From the ring of one trace to the program of one rank.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "read/job_intake.h"
#include "read/trace_ring.h"
#include "read/trace_tables.h"

namespace lockstep {

/// How a communicator of a file stands in the Job.
struct TraceCommView {
  CommIndex index = kNoComm;               ///< kNoComm: its calls cannot be compared, and become opaque
  std::span<const std::int32_t> members{}; ///< job ranks by communicator rank; empty = not known
  bool compare_arguments = true;           ///< false: of its calls only kind and root are compared
  bool nccl = false;
  bool gloo = false;                       ///< of torch: every call is issued, and then waited for
  CommIndex shared_by_threads = kNoComm;   ///< two threads used it at once: its calls have no order
  bool elsewhere = false;                  ///< of another rank of the same process
  std::int32_t stated_size = 0;            ///< of NCCL, where the members state different ones; else 0

  /// Job rank of a rank of the communicator; kNoPeer where it has none.
  std::int32_t rank_of(std::int32_t comm_rank) const {
    const auto at = static_cast<std::size_t>(comm_rank);
    return comm_rank >= 0 && at < members.size() ? members[at] : kNoPeer;
  }
};

/// The ids of one file, translated.
struct TraceNames {
  std::vector<TraceCommView> comms{};
  std::vector<SiteIndex> sites{};
  std::vector<DatatypeIndex> datatypes{};
  std::vector<RedopIndex> redops{};
  std::int32_t device = -1;  ///< of this rank, where a process has several; -1 = not known
  bool nccl = false;         ///< the job uses NCCL, and MPI at most beside it
  bool gloo = false;         ///< the job uses groups of torch
  /// The makings of torch's groups have an order of their own: gloo does not count them among the calls of the default group, nor does
  /// every version wait for all ranks in them. False where some record lost its first calls: positions are then as recorded.
  bool creations_apart = false;
  const std::map<std::uint64_t, std::vector<std::int32_t>>* torch_groups = nullptr;  ///< members, by CreationRecord::group_hash

  // By the ids of a record, which may be any: what the file does not name is empty.
  SiteIndex site(std::size_t id) const { return id < sites.size() ? sites[id] : SiteIndex{}; }
  DatatypeIndex datatype(std::size_t id) const { return id < datatypes.size() ? datatypes[id] : DatatypeIndex{}; }
  RedopIndex redop(std::size_t id) const { return id < redops.size() ? redops[id] : RedopIndex{}; }
  /// nullptr: calls on it cannot be compared.
  const TraceCommView* comparable(std::size_t id) const {
    return id < comms.size() && comms[id].index != kNoComm ? &comms[id] : nullptr;
  }
};

/// Where a message stands among those between the same two ranks, as its recorder counted.
struct MessagePosition {
  std::uint32_t operation = 0;
  std::uint32_t seq = 0;  ///< trace::kNoPosition: not counted
};

struct TraceProgram {
  Program program{};
  std::vector<MessagePosition> messages{};  ///< in the order of the operations
  std::vector<std::string> warnings{};
};

/// `call` as one of unknown effect.
Operation opaque_call(Operation call, std::string_view native_name, JobIntake& intake);
/// `call` as one that meets nobody: with MPI_PROC_NULL, or a wait for nothing that is open.
Operation marker_of(Operation call, std::string_view label, JobIntake& intake);

/// Reads all calls that the ring still holds. Blocks that the process overwrites meanwhile are left out, and what stands
/// before them with them. Operation::line is the number of the call in the file, from 1.
TraceProgram read_trace_program(const TraceTables& tables, const RingIndex& ring, const TraceNames& names, JobIntake& intake);

}  // namespace lockstep
