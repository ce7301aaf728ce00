// DeepSeek's DualPipe and DualPipeV: two streams of micro-batches through one set of ranks. All messages of a
// turn go out as one batch, on the default group whichever group was given (dualpipe/comm.py makes P2POps
// without one).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/schedule/timeline.h"

namespace lockstep::plan {

/// kBothWays: the model lies twice, from the first rank to the last and back; the micro-batches are shared
/// out between the copies. kVee: one model goes to the last rank and back.
enum class DualPipeKind : std::uint8_t { kBothWays, kVee };

/// Why DualPipe refuses to run this; nothing where it runs.
std::optional<std::string> dualpipe_rejection(DualPipeKind kind, std::int32_t ranks,
                                              std::int32_t micro_batches);

/// `chunk` of the Timeline is the direction (kBothWays: 0 = from the first rank) or the half of the V.
/// Precondition: not rejected.
Timeline dualpipe_timeline(DualPipeKind kind, std::int32_t ranks, std::int32_t micro_batches);

}  // namespace lockstep::plan
