// What a command line comes down to: launchers and wrappers, scripts and their interpreters, and the program
// behind them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class StepRole {
  kLauncher,  ///< starts the ranks: mpirun, srun, torchrun ...
  kWrapper,   ///< does something and becomes the next: env, timeout, numactl ...
  kScript,    ///< starts with "#!"; the next step is its interpreter
  kProgram,   ///< the last one
};

struct ProgramStep {
  StepRole role = StepRole::kProgram;
  std::string word{};  ///< as it was written
  std::string path{};  ///< the file; empty = not found
};

/// At least one step for a command that is not empty; the last is the program, or what was not found. Which
/// argument of a launcher is the program is a guess: the first that is an executable file. Nothing is
/// executed.
std::vector<ProgramStep> program_chain(std::span<const std::string_view> command);

/// The file that execvp(3) would take; empty = none.
std::string find_program(std::string_view word);

}  // namespace lockstep
