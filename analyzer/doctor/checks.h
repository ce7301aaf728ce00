// What `lockstep doctor` finds out: what of a program would be recorded, what not, and what to do about it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

enum class CheckState {
  kOk,
  kNote,     ///< worth knowing; nothing is lost by it
  kProblem,  ///< something would not be recorded
};
std::string_view check_state_name(CheckState state);

struct Check {
  CheckState state = CheckState::kOk;
  std::string subject{};  ///< "library", "program", "directory" ...
  std::string what{};     ///< what is the case
  std::string fix{};      ///< what to do, for a problem and some notes; else empty
};

/// All checks. `library` is where liblockstep.so is; `command` what would be run, may be empty. Reads files
/// and the environment; executes, loads and writes nothing.
std::vector<Check> check_recording(const Result<std::string>& library,
                                   std::span<const std::string_view> command);

// The parts, each adding to `checks`.

/// The library itself and the variables that steer it.
void check_library(const Result<std::string>& library, std::vector<Check>& checks);
void check_environment(std::vector<Check>& checks);
/// The command: whether the library gets into it, and which communication libraries it has.
void check_command(const Result<std::string>& library, std::span<const std::string_view> command,
                   std::vector<Check>& checks);
/// Where the traces would go.
void check_directory(std::vector<Check>& checks);

}  // namespace lockstep
