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
  std::uint32_t gate() const { return gate_and_flags & ~(kArrive | kWait); }
  bool arrives() const { return (gate_and_flags & kArrive) != 0; }
  bool waits() const { return (gate_and_flags & kWait) != 0; }
};

/// A host or one of its queues.
struct Actor {
  ProgramIndex program = kNoProgram;
  /// Nothing but calls that the host makes one after the other: its items are read off the operations, one for each, and
  /// `items` is empty. Most programs of most jobs are like this, and not writing them down is half the time of a replay.
  bool is_plain = false;
  std::vector<ScriptItem> items{};
};

struct Script {
  std::vector<Actor> actors{};
  /// missing[gate] = arrivals until it opens. Gates below MatchResult::gate_count are those of the match; then come one for
  /// each of MatchResult::probes, at which the sender arrives, and components of coupled batches, up to `rendezvous_count`;
  /// the others are internal (host to queue, queue to host).
  std::vector<std::uint32_t> missing{};
  std::uint32_t rendezvous_count = 0;
  /// Items [first, end) of an actor are one wait of the host for streams, an event or the device. By actor, then item.
  struct HostWait {
    std::uint32_t actor = 0, first = 0, end = 0;
    std::uint32_t operation = 0;
  };
  std::vector<HostWait> host_waits{};
};

/// Reads the items of a plain actor, in order. An operation that meets nobody gives an item that neither arrives nor waits.
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
      if (buffered_[static_cast<std::size_t>(operation.kind)] && (operation.flags & kOpHeld) == 0) flags = ScriptItem::kArrive;
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
  const bool skips_empty_;  // NCCL does not enqueue collectives of no elements
  std::vector<std::uint32_t> first_gates_;  // by communicator
  std::vector<bool> buffered_;              // by kind
};

/// Whether a send of this kind completes without its receive: MPI's buffered ones, and in `eager` those that libraries buffer
/// when they are small.
bool is_buffered_send(Library library, BlockingModel model, OpKind kind);

/// O(operations).
Script compile_script(const Job& job, const MatchResult& match, const ReplayOptions& options);

}  // namespace lockstep
