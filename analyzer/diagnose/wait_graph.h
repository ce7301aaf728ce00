// The wait-for graph of a standstill, and its bottom: the ranks that hold all others and wait for nobody but themselves.
// Theory: Hilbrich et al., SC'12 and SC'13; all waits here are AND-waits, for which a cycle is a deadlock.
#pragma once

#include <cstdint>
#include <vector>

#include "model/job.h"
#include "replay/replay.h"

namespace lockstep {

enum class CauseKind : std::uint8_t {
  kCycle,           ///< ranks that wait for each other
  kUnequalCalls,    ///< ranks that met in one rendezvous with different calls
  kEnded,           ///< a rank that exited
  kKilled,
  kStandsElsewhere, ///< a rank whose record ends outside any call, and that nothing says has ended
  kCutRecord,       ///< a rank whose record is not whole: it may have made the call
  kNoRecord,        ///< a rank that left nothing
};

/// One bottom of the graph: a cause for those that stand above it.
struct Cause {
  CauseKind kind = CauseKind::kCycle;
  std::vector<std::int32_t> ranks{};       ///< job ranks, sorted
  std::vector<std::size_t> stuck{};        ///< indices into ReplayResult::stuck: the rendezvous inside it or waiting for it
  std::vector<std::int32_t> victims{};     ///< ranks that wait for it, directly or not; sorted
};

/// Causes: cycles and unequal calls first, then by kind, then by rank. A rank that left no record, or a cut one, hides
/// nothing: a cycle among others is a deadlock whatever it did.
std::vector<Cause> find_causes(const Job& job, const ReplayResult& replay);

}  // namespace lockstep
