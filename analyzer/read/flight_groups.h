// The process groups of a job as its Flight Recorder dumps show them together: what each member called and how far it came.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "read/flight_dump.h"

namespace lockstep {

/// A dump whose rank is known.
struct RankedDump {
  std::int32_t rank = 0;
  FlightDump* dump = nullptr;
};

/// What one member's dump shows of a group. Numbers of collectives, from 1.
struct FlightMember {
  std::size_t dump = 0;                 ///< index into the ranked dumps
  std::uint32_t first = 0, last = 0;    ///< of its entries; 0 = has none
  std::uint32_t completed = 0;          ///< all up to this one are known to have completed on it
  std::optional<std::uint32_t> stated{};  ///< pg_status: made and completed so many, nothing in flight
  std::uint32_t calls() const { return last; }
};

/// One group of the job: equal name and equal members.
struct JobGroup {
  CommIndex comm = kNoComm;
  bool has_messages = false;
  bool has_members = false;
  bool is_world = false;                ///< the default group, whose members no dump lists
  std::vector<FlightMember> members{};  ///< those with a dump that names the group
  std::uint32_t completed = 0;          ///< some member completed all up to this one, so every member had made them
  std::uint32_t made = 0;               ///< the last that some member made
};

/// group_of[d][g]: index of the JobGroup behind group g of dump d.
struct JobGroups {
  std::vector<JobGroup> groups{};
  std::vector<std::vector<std::size_t>> group_of{};
};

/// Makes the communicators. The key is name and members: subgroups of one call have equal names and other members on other
/// ranks. A group whose members are not in a dump takes those of another dump, where only one of that name has this rank.
JobGroups join_flight_groups(std::span<const RankedDump> dumps, JobIntake& intake);

/// True where the completion of a collective on one member shows that every member has made it: all have to contribute.
constexpr bool completion_proves_arrival(OpKind kind) {
  switch (kind) {
    case OpKind::kAllReduce:
    case OpKind::kAllGather:
    case OpKind::kAllGatherV:
    case OpKind::kReduceScatter:
    case OpKind::kReduceScatterV:
    case OpKind::kAllToAll:
    case OpKind::kAllToAllV:
    case OpKind::kBarrier:
    case OpKind::kMonitoredBarrier:
      return true;
    default:
      return false;
  }
}

}  // namespace lockstep
