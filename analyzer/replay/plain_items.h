// Programs whose host makes one call after the other: what replay runs is read off their operations, and not written
// down.
#pragma once

#include <cstdint>
#include <vector>

#include "match/match.h"
#include "model/job.h"
#include "replay/replay.h"
#include "replay/script.h"

namespace lockstep {

/// Reads the items of a plain actor, in order. An operation that meets nobody gives an item that neither arrives nor
/// waits.
class PlainItems {
 public:
  PlainItems(const Job& job, const MatchResult& match, const ReplayOptions& options);

  /// `ordinal` counts the point-to-point operations of the program before operation `at`; moved on.
  ScriptItem item(ProgramIndex program, std::uint32_t at, std::uint32_t& ordinal) const {
    return item(job_.program(program).operations[at], to_size(program), at, ordinal);
  }
  ScriptItem item(const Operation& operation, std::size_t program, std::uint32_t at, std::uint32_t& ordinal) const {
    const OpClass what = op_class(operation.kind);
    std::uint32_t flags = ScriptItem::kArrive | ScriptItem::kWait;
    if (trust_completion_ && operation.state == OpState::kCompleted) flags = ScriptItem::kArrive;
    if (what == OpClass::kPointToPoint) {
      const GateIndex gate = match_.message_gates[program][ordinal++];
      if (gate == kNoGate) return {};
      if (buffered_[static_cast<std::size_t>(operation.kind)] && (operation.flags & kOpHeld) == 0)
        flags = ScriptItem::kArrive;
      return {static_cast<std::uint32_t>(gate) | flags, at};
    }
    if (!is_collective(operation.kind) || operation.comm == kNoComm) return {};
    if (skips_empty_ && is_empty_collective(operation)) flags = ScriptItem::kArrive;
    return {(first_gates_[to_size(operation.comm)] + operation.seq) | flags, at};
  }

 private:
  const Job& job_;
  const MatchResult& match_;
  const bool trust_completion_;
  const bool skips_empty_;                  // NCCL does not enqueue collectives of no elements
  std::vector<std::uint32_t> first_gates_;  // by communicator
  std::vector<bool> buffered_;              // by kind
};

}  // namespace lockstep
