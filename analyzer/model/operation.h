// One recorded or planned call as the analyzer sees it, whatever source it came from.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "lockstep/op_kind.h"

namespace lockstep {

/// An element count: a number, or a symbol ("V*h/tp") that compares as text, or nothing (barrier).
class Count {
 public:
  constexpr Count() = default;
  static constexpr Count of(std::uint64_t elements) { return Count(elements & ~kSymbolBit); }
  static constexpr Count symbol(StringIndex text) { return Count(kSymbolBit | to_size(text)); }

  constexpr bool is_none() const { return bits_ == kNone; }
  constexpr bool is_symbol() const { return !is_none() && (bits_ & kSymbolBit) != 0; }
  constexpr bool is_number() const { return (bits_ & kSymbolBit) == 0; }
  constexpr std::uint64_t number() const { return bits_; }
  constexpr StringIndex text() const { return StringIndex{static_cast<std::uint32_t>(bits_)}; }
  constexpr std::uint64_t bits() const { return bits_; }
  friend constexpr bool operator==(Count, Count) = default;

  static constexpr std::uint64_t kMaxNumber = (std::uint64_t{1} << 63) - 1;

 private:
  static constexpr std::uint64_t kSymbolBit = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  constexpr explicit Count(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits_ = kNone;
};

/// How far the evidence saw a call come. Entered, enqueued and started calls had not completed when it was taken.
enum class OpState : std::uint8_t {
  kUnknown = 0,    ///< nothing known: a plan, or a source without completion
  kEntered = 1,    ///< the host was inside the call
  kEnqueued = 2,   ///< the host call returned; completion not seen
  kStarted = 3,    ///< running on the device
  kCompleted = 4,  ///< known to have finished: it never blocks in replay
};

constexpr std::string_view op_state_name(OpState state) {
  switch (state) {
    case OpState::kUnknown:
      return "unknown";
    case OpState::kEntered:
      return "entered";
    case OpState::kEnqueued:
      return "enqueued";
    case OpState::kStarted:
      return "started";
    case OpState::kCompleted:
      return "completed";
  }
  return "unknown";
}

/// Index into Job::datatypes() and Job::redops(); 0 = none.
enum class DatatypeIndex : std::uint16_t {};
enum class RedopIndex : std::uint16_t {};

enum OperationFlags : std::uint16_t {
  kOpNonblocking = 1U << 0,  ///< issued without waiting: MPI_I*, async_op=True, anything with a handle or a stream
  kOpCaptured = 1U << 1,     ///< recorded into a graph, not executed
  kOpThreadUnsafe = 1U << 2, ///< its communicator was used by two threads at once
  kOpPersistent = 1U << 3,
  kOpGap = 1U << 4,          ///< no call: calls are missing here, so that nothing behind it has a known position
  kOpHeld = 1U << 5,         ///< the rank's record ends inside this call: whatever might have let it go did not
  kOpReplayed = 1U << 6,     ///< made by the graph launch before it: a copy of a captured call, see graph_replays.h
  kOpFailed = 1U << 7,       ///< the library refused the call (its result was an error): it had no effect
};

/// `peer` values that are no rank.
inline constexpr std::int32_t kNoPeer = -1;
inline constexpr std::int32_t kAnyPeer = -2;
inline constexpr std::uint32_t kNoTag = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint32_t kAnyTag = kNoTag - 1;

/// One call of one rank. One cache line: a job has 10^8 of them, and replay visits them rank by rank. Rare data is in
/// OperationExtra.
struct alignas(64) Operation {
  Count count{};                    ///< elements, not bytes
  CommIndex comm = kNoComm;
  std::uint32_t seq = 0;            ///< position among the collectives of (rank, comm), from 0; set by JobBuilder
  std::int32_t peer = kNoPeer;      ///< root, or partner of a point-to-point call, as a job rank
  std::uint32_t tag = kNoTag;
  std::uint32_t launch = 0;         ///< equal non-zero numbers of one rank are issued together; 0 = alone
  StringIndex stream{};             ///< queue that it is issued to; empty = the library's own choice
  StringIndex handle{};             ///< what a later wait names
  StringIndex payload{};            ///< what a message carries, as far as the source says ("act:0.2")
  SiteIndex site{};
  std::uint32_t line = 0;           ///< in the program's source file, from 1; 0 = not known
  std::uint32_t extra = 0;          ///< 0 = none, else Job::extra(extra)
  DatatypeIndex datatype{};
  RedopIndex redop{};
  OpKind kind = OpKind::kUnknown;
  OpState state = OpState::kUnknown;
  std::uint16_t flags = 0;

  bool nonblocking() const { return (flags & kOpNonblocking) != 0; }
};
static_assert(sizeof(Operation) == 64);

/// False for a call that never reached its partners: captured into a graph, or refused. It has no position.
constexpr bool takes_effect(const Operation& operation) { return (operation.flags & (kOpCaptured | kOpFailed)) == 0; }
/// A collective with a position on its communicator.
constexpr bool is_placed_collective(const Operation& operation) {
  return is_collective(operation.kind) && operation.comm != kNoComm && takes_effect(operation);
}
/// A message that its partner can meet.
constexpr bool is_placed_message(const Operation& operation) {
  return is_point_to_point(operation.kind) && takes_effect(operation);
}

/// What few calls have.
struct OperationExtra {
  std::optional<std::uint64_t> received{};  ///< all_to_all: elements in all, where they are not `count`, which is sent
  std::vector<std::uint64_t> counts{};    ///< per-member counts of the v-collectives, in members' order; all_to_all_v: what is sent
  std::vector<std::uint64_t> recv_counts{};  ///< all_to_all_v: what is received from each member
  std::vector<std::int32_t> members{};    ///< creation: job ranks of the new communicator, as passed
  std::string color{};                    ///< creation by split; differs between ranks by design
  std::string key{};
  std::string label{};                    ///< what a plan calls it: instruction, layer, optimizer group
  std::string native_name{};              ///< the call as the source spells it: "ncclAllReduce"
  std::optional<std::int64_t> native_seq{};
  std::optional<double> at{};             ///< seconds, the source's clock
  std::string thread{};
};

}  // namespace lockstep
