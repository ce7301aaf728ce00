// The pieces of zero_bubble.cc: one scheduler each. Orders hold F, B, W and BW with stage, chunk, micro_batch
// and layer set.
#pragma once

#include "plan/schedule/zero_bubble.h"

namespace lockstep::plan {

inline constexpr std::int64_t kZbCost =
    1;  ///< of F, B and W; BW costs as much as B, as in upstream's add_time
inline constexpr std::int64_t kZbMessageCost = 0;

inline Error zb_assertion(const std::string& what) {
  return {ErrorCode::kUnsupported, "AssertionError: " + what};
}

ZbNode zb_compute(ZbType type, std::int32_t stages, std::int32_t stage, std::int32_t chunk,
                  std::int32_t micro_batch, bool vee);

Result<ZbOrder> zb_heuristic_order(const ZeroBubbleQuery& query);
Result<ZbOrder> zbv_order(const ZeroBubbleQuery& query);
Result<ZbOrder> zbv_greedy_order(const ZeroBubbleQuery& query, bool half);
Result<ZbOrder> v1f1b_order(const ZeroBubbleQuery& query);

}  // namespace lockstep::plan
