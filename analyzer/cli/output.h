// Writes results and notices when they do not arrive: a closed pipe, a full disk.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// All of `text`, flushed. False: it did not arrive and stderr says why.
[[nodiscard]] bool write_stdout(std::string_view text);

/// Replaces the file; "-" is standard output. False: it could not be written in full and stderr says why.
[[nodiscard]] bool write_file(const std::string& path, std::string_view text);

/// One line on stderr about the input.
void print_warning(std::string_view message);

/// From now on a closed pipe is an error of write_stdout() and not the end of the process.
void ignore_broken_pipes();
/// SIGPIPE is again what this process was started with, for a command that takes its place.
void restore_broken_pipes();

/// Standard output is a terminal and the user has not set NO_COLOR (https://no-color.org).
bool stdout_takes_colour();

}  // namespace lockstep
