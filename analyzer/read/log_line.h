// One line of a job log without what launchers, collectors and terminals put around it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

struct LogLine {
  std::string_view text{};             ///< what the program printed
  std::optional<std::int32_t> rank{};  ///< as the first prefix says
  std::optional<std::int32_t> number{};  ///< of the last "N: " taken off, which a line of its own kind may mean
};

/// Takes prefixes off ("[rank3]:", "3: " of srun, "[1,0]<stderr>:" of mpirun, "[default0]:", a pod's name, time stamps), ANSI
/// colours and the carriage return. `buffer` keeps the text where something inside it had to go.
LogLine clean_log_line(std::string_view line, std::string& buffer);

}  // namespace lockstep
