// Timelines in the form in which traces of the frameworks' own step loops are written down: "F0.1",
// "batch#2[send>1 act:0.1; ...]".
#pragma once

#include <string>
#include <vector>

#include "plan/schedule/timeline.h"

namespace lockstep::plan {

/// One line a step. `received` is received_payloads() of the whole: a receive is shown with what it gets.
/// `show_world`: mark messages on the default group.
std::vector<std::string> trace_lines(const RankTimeline& rank, const std::vector<Payload>& received,
                                     bool show_world);

}  // namespace lockstep::plan
