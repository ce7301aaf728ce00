// Was a report right about a fault that was put into a correct job?
#pragma once

#include <string>

#include "diagnose/finding.h"
#include "support/fault.h"
#include "support/sketch.h"

namespace lockstep::testing {

/// Judged by the first finding, the one that a user reads.
struct Judgement {
  bool flagged = false;      ///< the verdict is not `consistent`
  bool ranks_right = false;  ///< divergent_ranks are those that the evidence can name, see judge.cc
  bool position_right =
      false;  ///< communicator and position are those of the fault, or one that no evidence tells from it
  bool blames_others = false;  ///< a certain finding whose divergent ranks leave out the one at fault
  std::string expected{};      ///< for the person who reads a failed test
  std::string found{};
};

Judgement judge(const JobSketch& correct, const JobSketch& faulted, const Fault& fault, const Report& report);

}  // namespace lockstep::testing
