// Reports made by hand, for tests of what is printed: no analysis is behind them.
#pragma once

#include <vector>

#include "diagnose/finding.h"

namespace lockstep {

/// Two pipeline stages: one reduces its norm once more than the other and waits in it; the other went on to a broadcast.
Report deadlock_report();
/// 4,096 ranks wait in an all_reduce that rank 7 never made; rank 7 has exited.
Report large_imbalance_report();
/// Two ranks meet with different sizes.
Report size_report();
/// Nothing wrong; one remark on buffering.
Report consistent_report();
/// Node trouble: the evidence names an earlier event.
Report other_cause_report();
/// Every list is long, every text is long, and every string carries control characters.
Report hostile_report();

std::vector<Report> sample_reports();

}  // namespace lockstep
