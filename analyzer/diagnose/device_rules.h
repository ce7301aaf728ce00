// What hosts that wait for their device, and NCCL's buffers and groups, make of a wait-for cycle.
#pragma once

#include <span>

#include "diagnose/describe.h"
#include "diagnose/finding.h"
#include "diagnose/wait_graph.h"
#include "replay/replay.h"

namespace lockstep {

/// Adds to the finding of a cycle which host stands in a wait, and since when; for NCCL it lowers the severity where small
/// messages may pass (the cycle is not in `eager`), and names a message to the own rank outside a group. `models` are those
/// that were run; finding.models those that stall.
void describe_device_rules(const Describer& describe, const ReplayResult& standstill, const Cause& cause,
                           std::span<const BlockingModel> models, Finding& finding);

}  // namespace lockstep
