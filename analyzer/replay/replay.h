// Runs all programs of a Job together under the blocking rules of its library until they end or none can move.
//
// The rules, per rank. A program is run by its host, which issues operations in order; an operation starts on a queue
// and completes when it has met its partners. Matching comes first and does not depend on timing: collectives by position
// on their communicator, messages by (communicator, sender, receiver[, tag]) in order. An operation has started once it
// is at the head of its queue and the host has reached it; a collective completes when every member has started its own
// of that position, a message when both sides have started. A batch (or NCCL group) starts as a whole and completes
// when all its parts have. The outcome does not depend on the order in which ranks are run: every rule waits for
// something that, once true, stays true.
//
//  library        host waits for ...                      queues
//  nccl           `wait`, its own waits for streams,      one per `stream` (all unnamed ones are one stream); one for all
//                 events and the device, and meetings:    where the launch order is implicit. The launches of one
//                 making and ending a communicator        communicator run in the order of issue, on whatever streams
//                 (unless told not to block)
//  torch, none    operations without handle or stream;    one per communicator; in `lazy` messages outside a batch use one
//                 batches and i-calls are not waited for  per (communicator, pair of ranks) instead, as torch's
//                 until `wait`                            communicator for two ranks does
//  mpi            blocking calls                          none: every operation starts when it is issued
//
//  model     what it assumes
//  lazy      as above
//  eager     torch: messages share the queue of their communicator. nccl: sends complete without their receive, as small ones
//            may. mpi: standard sends are buffered, and members of a rooted collective wait only for the data they need
//  blocking  the host waits for every operation, i-calls and batches too (mpi: sends wait for their receive, and every
//            collective for all members, but nonblocking calls stay nonblocking)
//  coupled   as lazy, but a batch completes only together with every batch it exchanges messages with (mpi: as lazy)
//
// A host in `stream_sync` waits for what was issued to the stream so far, in `device_sync` for all streams, in `event_sync` for what
// stood on the stream when the event was recorded; `stream_wait` makes what comes to its stream wait for that, not the host. A
// collective of no elements is not enqueued by NCCL and waits for nobody. A graph launch is the calls that were captured, see
// model/graph_replays.h.
//
// In a program of NCCL that makes calls of MPI, too, each call follows the rules of the library of its communicator; of MPI's
// models, `blocking` is the strict one, and the lenient one holds in all others.
//
// An operation known to have completed (OpState::kCompleted, or a host wait for it that returned) never blocks. One that its
// rank's record ends in (kOpHeld) did: `eager` does not let it go early. A collective whose kind, root or size differs
// between members does not complete, unless it is known to have; NCCL repairs another order inside one group (match/nccl_groups.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "match/match.h"
#include "model/job.h"

namespace lockstep {

enum class BlockingModel : std::uint8_t { kLazy, kEager, kBlocking, kCoupled };
std::string_view blocking_model_name(BlockingModel model);

struct ReplayOptions {
  BlockingModel model = BlockingModel::kLazy;
  /// false: ignore what the evidence knows about completion; finds what an unlucky run would block on.
  bool trust_completion = true;
  /// true: a group of NCCL is launched as written, one communicator after the other, as its documentation has it. (The library
  /// puts communicators in an order of its own since 2.26.2.)
  bool groups_as_written = false;
  /// true: a collective of no elements, from which NCCL returns without enqueuing anything, is met like any other: what a program
  /// would stand in that has data at hand. Not for a job whose calls are paired apart (MatchResult::pairs_apart).
  bool empty_calls_meet = false;
};

/// One operation that holds its rank: the rank has come to it, and it cannot complete.
struct BlockedOperation {
  ProgramIndex program = kNoProgram;
  std::uint32_t operation = 0;  ///< index in the program
  std::size_t stuck = 0;        ///< index into ReplayResult::stuck: what it waits for
};

/// A rendezvous at which some ranks stand and others do not come.
struct StuckGate {
  GateIndex gate = kNoGate;  ///< of MatchResult; kNoGate for a probe and for a set of coupled batches
  std::vector<ProgramIndex> arrived{};  ///< sorted
  std::vector<ProgramIndex> later{};    ///< would arrive, but stand still before; sorted
  std::vector<std::int32_t> never{};    ///< job ranks that have no such call in their program, or left none; sorted
};

/// A host that stands in a call on a stream, an event or the device, and issues nothing more until it returns.
struct WaitingHost {
  ProgramIndex program = kNoProgram;
  std::uint32_t operation = 0;  ///< the waiting call
};

struct ReplayResult {
  /// By program, then position. Empty = every program came to its end.
  std::vector<BlockedOperation> blocked{};
  std::vector<StuckGate> stuck{};
  std::vector<WaitingHost> waiting_hosts{};  ///< by program; among those with a blocked operation
  bool finished() const { return blocked.empty(); }
};

/// O(operations). Deterministic.
ReplayResult replay(const Job& job, const MatchResult& match, const ReplayOptions& options);

/// The models whose outcome can differ from `lazy` for this Job; the others need not be run.
std::vector<BlockingModel> distinct_models(const Job& job, const MatchResult& match);

}  // namespace lockstep
