// The schedules of sail-sg's zero-bubble scheduler (megatron/core/pipeline_parallel/zerobubble/scheduler):
// orders of computation, the messages that its passes insert, and the batches that its runtime fuses them to.
// Costs are one unit for F, B and W, and none for communication; the ILP is not modelled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/schedule/timeline.h"

namespace lockstep::plan {

enum class ZeroBubbleSchedule : std::uint8_t {
  k1F1B,
  kZb,
  kVpp,
  kZbv,
  kZbvGreedyMin,
  kZbvGreedyHalf,
  kV1F1B
};

struct ZeroBubbleQuery {
  ZeroBubbleSchedule schedule = ZeroBubbleSchedule::k1F1B;
  std::int32_t stages = 1;  ///< ranks
  std::int32_t micro_batches = 1;
  std::int32_t chunks = 1;  ///< of a rank: 2 for the V shapes
  bool post_validation = false;
};
/// What the schedule takes; 0 = any from 2.
std::int32_t chunks_of(ZeroBubbleSchedule schedule);

enum class ZbType : std::uint8_t {
  kF,
  kB,
  kW,
  kBW,
  kSendForward,
  kRecvForward,
  kSendBackward,
  kRecvBackward,
  kPostValidation,
  kSendPostValidation,
  kRecvPostValidation,
};

struct ZbNode {
  ZbType type = ZbType::kF;
  bool rollback = false;   ///< a receive whose result post-validation may throw away
  bool to_next = false;    ///< of messages: the peer is the next rank
  std::int32_t stage = 0;  ///< rank
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  std::int32_t layer = 0;  ///< stage of the whole model
  std::int32_t peer = -1;
  std::int32_t pair = 0;  ///< equal for a send and its receive
  std::int64_t start = 0, end = 0;
};

using ZbOrder = std::vector<std::vector<ZbNode>>;  ///< by rank

/// The order of computation. The error is the scheduler's own: an assertion that does not hold for these
/// numbers.
Result<ZbOrder> zero_bubble_order(const ZeroBubbleQuery& query);
/// The same with messages.
Result<ZbOrder> zero_bubble_with_messages(const ZeroBubbleQuery& query, const ZbOrder& order);

std::string zb_row_text(const std::vector<ZbNode>& row);

/// Messages between two computations are one batch, in the order of fused_pipeline_ops. Chunks are stages of
/// the whole model.
Timeline zero_bubble_timeline(const ZbOrder& with_messages);

}  // namespace lockstep::plan
