// The closed list of calls that a trace and a Job can hold: wire value, name, and what kind of rule applies to each.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

/// What the analyzer may assume about a call.
enum class OpClass : std::uint8_t {
  kNone = 0,        ///< not a call
  kCollective = 1,  ///< every member of the communicator makes it; matched by position
  kCreation = 2,    ///< makes a communicator; a collective on its parent
  kTeardown = 3,    ///< ends a communicator; a collective on it, in MPI and NCCL alike
  kPointToPoint = 4,
  kCompletion = 5,  ///< waits for, or asks about, operations issued before
  kMarker = 6,      ///< structure of the program: group brackets, computation, exit
  kLocal = 7,       ///< recorded for its meaning on one rank only; never matched
  kOpaque = 8,      ///< recorded, but no rule decides it: leads to `insufficient`, never to a verdict
};

// X(enumerator, wire value, snake_case name, class). A value never changes its meaning; new kinds take new values.
#define LOCKSTEP_OP_KINDS(X)                          \
  X(kUnknown, 0, "unknown", kNone)                    \
  X(kAllReduce, 1, "all_reduce", kCollective)         \
  X(kBroadcast, 2, "broadcast", kCollective)          \
  X(kReduce, 3, "reduce", kCollective)                \
  X(kAllGather, 4, "all_gather", kCollective)         \
  X(kReduceScatter, 5, "reduce_scatter", kCollective) \
  X(kAllToAll, 6, "all_to_all", kCollective)          \
  X(kGather, 7, "gather", kCollective)                \
  X(kScatter, 8, "scatter", kCollective)              \
  X(kScan, 9, "scan", kCollective)                    \
  X(kExscan, 10, "exscan", kCollective)               \
  X(kBarrier, 11, "barrier", kCollective)             \
  X(kAllGatherV, 12, "all_gather_v", kCollective)     \
  X(kGatherV, 13, "gather_v", kCollective)            \
  X(kScatterV, 14, "scatter_v", kCollective)          \
  X(kAllToAllV, 15, "all_to_all_v", kCollective)      \
  X(kAllToAllW, 16, "all_to_all_w", kCollective)      \
  X(kReduceScatterV, 17, "reduce_scatter_v", kCollective) \
  X(kMonitoredBarrier, 18, "monitored_barrier", kCollective) \
  X(kInit, 40, "init", kCreation)                     \
  X(kSplit, 41, "split", kCreation)                   \
  X(kDup, 42, "dup", kCreation)                       \
  X(kCreate, 43, "create", kCreation)                 \
  X(kNewGroup, 44, "new_group", kCreation)            \
  X(kCreateGroup, 45, "create_group", kCreation)      \
  X(kShrink, 46, "shrink", kCreation)                 \
  X(kGrow, 47, "grow", kCreation)                     \
  X(kIntercommCreate, 48, "intercomm_create", kCreation) \
  X(kIntercommMerge, 49, "intercomm_merge", kCreation) \
  X(kCartCreate, 50, "cart_create", kCreation)        \
  X(kGraphCreate, 51, "graph_create", kCreation)      \
  X(kDistGraphCreate, 52, "dist_graph_create", kCreation) \
  X(kSplitType, 53, "split_type", kCreation)          \
  X(kCartSub, 54, "cart_sub", kCreation)              \
  X(kWindowRegister, 55, "window_register", kCreation) \
  X(kFinalize, 60, "finalize", kTeardown)             \
  X(kFree, 61, "free", kTeardown)                     \
  X(kDisconnect, 62, "disconnect", kTeardown)         \
  X(kDestroy, 63, "destroy", kLocal)                  \
  X(kAbort, 64, "abort", kLocal)                      \
  X(kRevoke, 65, "revoke", kLocal)                    \
  X(kSend, 80, "send", kPointToPoint)                 \
  X(kRecv, 81, "recv", kPointToPoint)                 \
  X(kIsend, 82, "isend", kPointToPoint)               \
  X(kIrecv, 83, "irecv", kPointToPoint)               \
  X(kSsend, 84, "ssend", kPointToPoint)               \
  X(kBsend, 85, "bsend", kPointToPoint)               \
  X(kRsend, 86, "rsend", kPointToPoint)               \
  X(kIssend, 87, "issend", kPointToPoint)             \
  X(kIbsend, 88, "ibsend", kPointToPoint)             \
  X(kIrsend, 89, "irsend", kPointToPoint)             \
  X(kWait, 100, "wait", kCompletion)                  \
  X(kWaitAny, 101, "wait_any", kCompletion)           \
  X(kWaitSome, 102, "wait_some", kCompletion)         \
  X(kTest, 103, "test", kCompletion)                  \
  X(kProbe, 104, "probe", kCompletion)                \
  X(kIprobe, 105, "iprobe", kCompletion)              \
  X(kStreamSync, 106, "stream_sync", kCompletion)     \
  X(kDeviceSync, 107, "device_sync", kCompletion)     \
  X(kEventSync, 108, "event_sync", kCompletion)       \
  X(kEventRecord, 109, "event_record", kCompletion)   \
  X(kStreamWait, 110, "stream_wait", kCompletion)     \
  X(kGroupStart, 120, "group_start", kMarker)         \
  X(kGroupEnd, 121, "group_end", kMarker)             \
  X(kCompute, 122, "compute", kMarker)                \
  X(kExit, 123, "exit", kMarker)                      \
  X(kGraphLaunch, 124, "graph_launch", kMarker)       \
  X(kOpaque, 140, "opaque", kOpaque)                  \
  X(kPutSignal, 141, "put_signal", kOpaque)           \
  X(kSignal, 142, "signal", kOpaque)                  \
  X(kWaitSignal, 143, "wait_signal", kOpaque)

enum class OpKind : std::uint8_t {
#define X(enumerator, value, name, op_class) enumerator = value,
  LOCKSTEP_OP_KINDS(X)
#undef X
};

/// The name as reports and Job JSON spell it; "unknown" for a value outside the list.
constexpr std::string_view op_name(OpKind kind) {
  switch (kind) {
#define X(enumerator, value, name, op_class) \
  case OpKind::enumerator:                   \
    return name;
    LOCKSTEP_OP_KINDS(X)
#undef X
  }
  return "unknown";
}

constexpr OpClass op_class(OpKind kind) {
  switch (kind) {
#define X(enumerator, value, name, op_class_) \
  case OpKind::enumerator:                    \
    return OpClass::op_class_;
    LOCKSTEP_OP_KINDS(X)
#undef X
  }
  return OpClass::kNone;
}

constexpr std::optional<OpKind> op_kind_from_name(std::string_view text) {
#define X(enumerator, value, name, op_class) \
  if (text == name) return OpKind::enumerator;
  LOCKSTEP_OP_KINDS(X)
#undef X
  return std::nullopt;
}

/// Matched by position among the calls of one communicator: collectives, creations and collective teardown.
constexpr bool is_collective(OpKind kind) {
  const OpClass c = op_class(kind);
  return c == OpClass::kCollective || c == OpClass::kCreation || c == OpClass::kTeardown;
}
constexpr bool is_point_to_point(OpKind kind) { return op_class(kind) == OpClass::kPointToPoint; }
constexpr bool is_receive(OpKind kind) { return kind == OpKind::kRecv || kind == OpKind::kIrecv; }
constexpr bool is_send(OpKind kind) { return is_point_to_point(kind) && !is_receive(kind); }
constexpr bool has_root(OpKind kind) {
  return kind == OpKind::kBroadcast || kind == OpKind::kReduce || kind == OpKind::kGather ||
         kind == OpKind::kScatter || kind == OpKind::kGatherV || kind == OpKind::kScatterV;
}
constexpr bool has_reduction(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kReduce || kind == OpKind::kReduceScatter ||
         kind == OpKind::kReduceScatterV || kind == OpKind::kScan || kind == OpKind::kExscan;
}
/// Counts may legally differ between the members (split sizes, per-rank counts, or no count that must agree).
constexpr bool has_free_count(OpKind kind) {
  return kind == OpKind::kAllGatherV || kind == OpKind::kGatherV || kind == OpKind::kScatterV ||
         kind == OpKind::kAllToAllV || kind == OpKind::kAllToAllW;
}
/// Orders host, streams and events of one device; names no communicator.
constexpr bool is_host_wait(OpKind kind) {
  return kind == OpKind::kStreamSync || kind == OpKind::kDeviceSync || kind == OpKind::kEventSync ||
         kind == OpKind::kEventRecord || kind == OpKind::kStreamWait;
}
/// Issued without waiting, whatever the library.
constexpr bool is_immediate(OpKind kind) {
  return kind == OpKind::kIsend || kind == OpKind::kIrecv || kind == OpKind::kIssend ||
         kind == OpKind::kIbsend || kind == OpKind::kIrsend;
}

}  // namespace lockstep
