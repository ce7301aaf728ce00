// The report as text for a terminal: the cause first, at most one screen.
#pragma once

#include <cstddef>
#include <string>

#include "diagnose/finding.h"

namespace lockstep {

struct TextOptions {
  bool colour = false;
  std::size_t width = 120;     ///< columns; at least 60
  std::size_t max_lines = 24;  ///< kept for any number of ranks and findings; at least 24
};

/// Ends with a newline. What does not fit is counted, not dropped in silence; the JSON report has all of it.
std::string report_text(const Report& report, const TextOptions& options = {});

/// The finding that gives a report its verdict and headline; nullptr where only the summary speaks.
const Finding* leading_finding(const Report& report);

}  // namespace lockstep
