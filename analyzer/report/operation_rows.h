// The rows of a text report that say which rank stands in which call: equal rows of many ranks become one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "diagnose/finding.h"

namespace lockstep {

/// "get_grad_norm_direct stage2.py:1505 < step", then the plan's label; empty where neither is known.
std::string site_text(const std::vector<Frame>& site, const std::string& label);

/// "f32[1024] sum root=1", as far as known.
std::string arguments_text(const OperationView& operation);

struct OperationRow {
  std::string text{};
  std::size_t ranks = 0;  ///< how many ranks it stands for
};

/// Rows of at most `width` columns: who stands where and waits for whom (`wait_for`), then the sides of the
/// disagreement (`operations`) that those rows do not show yet. Ranks with the same call, waiting for the
/// same ranks, share a row; where that leaves more than a few rows, ranks in the same call of like-named
/// communicators do too.
std::vector<OperationRow> operation_rows(const Finding& finding, std::size_t width);

}  // namespace lockstep
