// What replay runs: for every host and every queue a list of arrivals at gates and waits for them. All blocking models
// and libraries compile to this one form; the machine that runs it (replay.cc) knows none of them.
#pragma once

#include <cstdint>
#include <vector>

#include "match/match.h"
#include "model/job.h"
#include "replay/replay.h"

namespace lockstep {

/// One step: arrive at the gate, wait until it is open, or both in this order.
struct ScriptItem {
  std::uint32_t gate_and_flags = 0;
  std::uint32_t operation = 0;  ///< index in the program; whose step it is

  static constexpr std::uint32_t kArrive = 1U << 31;
  static constexpr std::uint32_t kWait = 1U << 30;
  static constexpr std::uint32_t kFlags = kArrive | kWait;
  std::uint32_t gate() const { return gate_and_flags & ~kFlags; }
  bool arrives() const { return (gate_and_flags & kArrive) != 0; }
  bool waits() const { return (gate_and_flags & kWait) != 0; }
};

/// A host or one of its queues.
struct Actor {
  ProgramIndex program = kNoProgram;
  /// Nothing but calls that the host makes one after the other: its items are read off the operations (plain_items.h),
  /// one for each, and `items` is empty. Most programs of most jobs are like this, and not writing them down is half
  /// the time of a replay.
  bool is_plain = false;
  std::vector<ScriptItem> items{};
};

struct Script {
  std::vector<Actor> actors{};
  /// missing[gate] = arrivals until it opens. Gates below MatchResult::gate_count are those of the match; then come one
  /// for each of MatchResult::probes, at which the sender arrives, and components of coupled batches, up to
  /// `rendezvous_count`; the others are internal (host to queue, queue to host).
  std::vector<std::uint32_t> missing{};
  std::uint32_t rendezvous_count = 0;
  /// Items [first, end) of an actor are one wait of the host for streams, an event or the device. By actor, then item.
  struct HostWait {
    std::uint32_t actor = 0, first = 0, end = 0;
    std::uint32_t operation = 0;
  };
  std::vector<HostWait> host_waits{};
};

/// O(operations).
Script compile_script(const Job& job, const MatchResult& match, const ReplayOptions& options);

}  // namespace lockstep
