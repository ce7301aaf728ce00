// The ring of a trace file: which blocks count, in which order, and what is missing between them.
#pragma once

#include <cstdint>
#include <vector>

#include "read/trace_tables.h"

namespace lockstep {

struct RingBlock {
  std::uint64_t number = 0;
  std::uint64_t offset = 0;  ///< of its first record behind the block header
  std::uint64_t end = 0;     ///< behind its last record
  std::uint32_t thread_index = 0;
};

/// Blocks in order of their numbers, without a gap between them.
struct RingIndex {
  std::vector<RingBlock> blocks{};
  /// Blocks in front of a gap, whose threads may still be inside a call there.
  std::vector<RingBlock> stranded{};
  bool head_missing = false;   ///< calls before the first block are lost
  bool several_threads = false;
};

/// Looks at the block headers only. O(blocks log blocks)
RingIndex index_ring(const TraceTables& tables);

/// Ticks of the last thing that the file holds: the end of its process, or else the newest entry or return. 0 = nothing. O(records).
std::uint64_t last_ticks(const TraceTables& tables, const RingIndex& ring);

/// Ticks of one file as seconds since 1970, by the two anchors that are farthest apart.
class TraceClock {
 public:
  TraceClock(const TraceTables& tables, const RingIndex& ring);
  /// 0 where the file has no usable anchor.
  double unix_seconds(std::uint64_t ticks) const;

 private:
  std::uint64_t anchor_ticks_ = 0;
  double anchor_seconds_ = 0;
  double seconds_per_tick_ = 0;
};

}  // namespace lockstep
