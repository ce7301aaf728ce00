// Pairs the calls of all ranks: collectives by position on their communicator, messages by sender and receiver in order.
// Says where ranks first disagree, and gives every rendezvous a number (gate) that replay counts arrivals at.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "match/signature.h"
#include "model/job.h"

namespace lockstep {

/// One rendezvous: position `seq` of a communicator, or message `seq` of a channel.
enum class GateIndex : std::uint32_t {};
inline constexpr GateIndex kNoGate{0x3fffffff};

/// The collectives of one member on one communicator.
struct MemberCalls {
  ProgramIndex program = kNoProgram;
  std::uint32_t count = 0;        ///< with those before its record (Program::earlier)
  std::uint64_t fingerprint = 0;  ///< hash over the signatures of its calls from first_position on, in order
  std::uint64_t partition = 0;    ///< hash over the positions that are launched together with the one before (NCCL groups)
};

/// What one member sends in a collective with per-member counts is not what the other expects.
struct VectorDifference {
  std::uint32_t seq = 0;
  std::int32_t sender = 0;  ///< job ranks
  std::int32_t receiver = 0;
  std::uint64_t sent = 0;
  std::uint64_t expected = 0;
};

struct CommunicatorMatch {
  GateIndex first_gate{};         ///< of first_position; see gate_of()
  /// Positions before this one are not matched: the record of some member begins after them.
  std::uint32_t first_position = 0;
  std::uint32_t positions = 0;    ///< the largest count of a member
  std::uint32_t participants = 0; ///< members that must arrive at each gate, recorded or not
  std::vector<MemberCalls> members{};   ///< members that left a record, by program; callers that are no member are not here
  std::vector<ProgramIndex> outsiders{};  ///< callers that are no member
  bool agreed = true;             ///< every recorded member made the same calls from first_position on, to the same number
  /// First position at which two members that came to it made different calls.
  std::optional<std::uint32_t> first_difference{};
  /// All positions that cannot complete for that reason, ascending.
  std::vector<std::uint32_t> blocking{};

  /// Positions at which the calls of some members stand in another order inside one NCCL group: NCCL sorts them itself.
  std::vector<std::uint32_t> repaired{};
  /// First position that some members launch in one group with the one before it and others do not.
  std::optional<std::uint32_t> partition_difference{};
  std::vector<VectorDifference> vector_differences{};  ///< by position; of the first such position only

  /// NCCL, where members mix launches and meetings of hosts differently (match/nccl_meetings.h): each kind is paired in a
  /// numbering of its own. Gates of launches come first; `blocking` counts gates from first_gate then.
  struct Apart {
    std::uint32_t launches = 0;
    std::uint32_t meetings = 0;
  };
  std::optional<Apart> apart{};

  /// kNoGate for a position that is not matched. Not for communicators that are paired apart.
  GateIndex gate_of(std::uint32_t seq) const {
    if (seq < first_position) return kNoGate;
    return GateIndex{static_cast<std::uint32_t>(first_gate) + (seq - first_position)};
  }
  std::uint32_t matched_positions() const {
    if (apart) return apart->launches + apart->meetings;
    return positions > first_position ? positions - first_position : 0;
  }
};

/// Messages from one rank to another on one communicator (and with one tag, where tags are matched).
struct ChannelMatch {
  CommIndex comm = kNoComm;
  std::int32_t sender = 0;    ///< job ranks
  std::int32_t receiver = 0;
  std::uint32_t tag = kNoTag;
  GateIndex first_gate{};
  std::vector<std::uint32_t> sends{};     ///< operation indices in the sender's program, in order
  std::vector<std::uint32_t> receives{};  ///< in the receiver's
  std::optional<std::uint32_t> first_difference{};
  /// The receiver also receives from anyone, or with any tag, on this communicator: which message such a receive took is not
  /// known, so nothing is said of the pairs, and none of them blocks.
  bool undecided = false;
};

/// A probe that waits until the message which the next receive would take has been sent.
struct ProbeMatch {
  ProgramIndex program = kNoProgram;
  std::uint32_t operation = 0;
  std::int32_t sender = 0;     ///< job rank
  GateIndex gate = kNoGate;    ///< of the message; kNoGate where it is never sent
};

/// What occurs in a program: decides which blocking rules can make a difference for it.
struct ProgramTraits {
  bool waits = false;        ///< calls of OpClass::kCompletion
  bool host_waits = false;   ///< of these, calls on streams, events and devices
  bool waits_by_peer = false;
  bool waits_by_stream = false;
  bool waits_for_all = false;
  bool batches = false;      ///< launches
  bool batched_messages = false;
  bool nonblocking = false;  ///< i-calls, handles, streams
  bool synchronous = false;  ///< calls that are neither nonblocking nor part of a launch
  bool rooted = false;       ///< broadcast, reduce, ...
  bool captured = false;     ///< calls that take no effect: captured, or refused by the library
  bool completed = false;    ///< calls known to have completed
  bool zero_counts = false;  ///< calls of no elements
  bool outsider = false;     ///< calls on a communicator that it is no member of
  bool launches = false;     ///< collectives or messages
  bool meets_after = false;  ///< makes or ends a communicator after such a call
  bool meets_between = false;  ///< ... and such a call follows
  std::uint32_t first_end = 0xffffffff;  ///< the first call that ends a communicator
};

/// A call that a rule of its own looks at.
struct OperationRef {
  ProgramIndex program = kNoProgram;
  std::uint32_t operation = 0;
};

struct MatchResult {
  std::vector<ProgramTraits> traits{};  ///< by program
  std::vector<CommunicatorMatch> communicators{};  ///< by CommIndex
  std::vector<ChannelMatch> channels{};
  /// message_gates[p] = gates of the point-to-point operations of program p, in program order; kNoGate for those that
  /// nothing decides (MPI_ANY_SOURCE, MPI_ANY_TAG, no partner).
  std::vector<std::vector<GateIndex>> message_gates{};
  std::vector<ProbeMatch> probes{};  ///< blocking ones with a source and tag, by program, in program order
  /// Calls that the library refused, that two threads made at once on one communicator, and inits with a rank: by program, in
  /// program order, the first kMostNoteworthy.
  std::vector<OperationRef> noteworthy{};
  static constexpr std::size_t kMostNoteworthy = 65536;
  std::uint32_t gate_count = 0;
  std::size_t undecided_messages = 0;  ///< wildcards
  std::size_t opaque_calls = 0;        ///< calls that no rule decides
  bool begins_late = false;            ///< some communicator has a first_position above 0
  bool pairs_apart = false;            ///< some communicator is paired apart

  bool agreed() const;
};

/// O(operations) where the ranks agree; the job is not copied. A job of more than 2^30 rendezvous is not matched (assert).
MatchResult match(const Job& job);

/// The communicator (or kNoComm) and the channel (or its index past the end) of a gate. `seq` is its place among the gates of a
/// communicator that is paired apart. O(log)
struct GateOwner {
  CommIndex comm = kNoComm;
  std::size_t channel = 0;  ///< index into MatchResult::channels where `comm` is kNoComm
  std::uint32_t seq = 0;
};
GateOwner owner_of(const MatchResult& match, GateIndex gate);

}  // namespace lockstep
