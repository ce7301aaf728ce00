// A subcommand of `lockstep` is a value; main.cc holds the list.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"

namespace lockstep {

/// Part of the contract with scripts (DESIGN section 6).
enum ExitCode : int {
  kExitConsistent = 0,
  kExitFindings = 1,  ///< a finding at or above --fail-on, or an earlier event is the cause
  kExitUsage = 2,
  kExitUnreadable = 3,    ///< nothing of the input could be used
  kExitInternal = 4,      ///< our fault, or the result could not be written
  kExitInsufficient = 5,  ///< the evidence does not decide
};

struct Subcommand {
  std::string_view name;
  std::string_view summary;  ///< a sentence
  std::string_view usage;    ///< "check [--format FORMAT] INPUT..."
  /// `args` are those after the name. Returns the exit code.
  int (*run)(std::span<const std::string_view> args);
};

extern const Subcommand kRunSubcommand;
extern const Subcommand kRehearseSubcommand;
extern const Subcommand kDoctorSubcommand;
extern const Subcommand kCheckSubcommand;
extern const Subcommand kShowSubcommand;
extern const Subcommand kPackSubcommand;
extern const Subcommand kPlanSubcommand;
extern const Subcommand kGateSubcommand;
extern const Subcommand kConformSubcommand;
extern const Subcommand kExplainSubcommand;

/// Say on stderr what is wrong and return the exit code for it.
int usage_error(const Subcommand& subcommand, std::string_view message);
int input_error(const Error& error);

}  // namespace lockstep
