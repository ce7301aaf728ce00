// Two looks at a job whose processes are alive: does it move?
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/finding.h"
#include "model/job.h"

namespace lockstep {

/// What two looks at a live job showed.
struct Observation {
  ProgressState state = ProgressState::kUnknown;  ///< kAdvancing or kStalled
  double stalled_for_s = 0;            ///< since any rank last entered or left a call
  std::vector<std::int32_t> moved{};   ///< ranks that made progress between the looks, sorted
};

/// Whether a process of the job was still there when its evidence was read.
bool is_live(const Job& job);

/// How far each rank had come at one look.
class Look {
 public:
  explicit Look(const Job& job);

  /// Compares with a later look at the same job. Polling (test, iprobe) is no progress. `now` in seconds since 1970.
  Observation compare(const Look& later, const Job& job, double now) const;

 private:
  struct RankState {
    std::int32_t rank = 0;
    std::uint64_t collectives = 0;  ///< with those that the record has lost
    std::uint64_t others = 0;
    std::uint64_t returned = 0;
    double last_event = 0;
    bool head_missing = false;
    EndKind end = EndKind::kUnknown;
  };
  std::vector<RankState> ranks_;  // by rank
};

}  // namespace lockstep
