// A line of a job log without what launchers and terminals put around it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

struct LogLine {
  std::string_view text{};              ///< without prefixes, escape sequences and line ends
  std::optional<std::int32_t> rank{};   ///< job rank, where a prefix names one
  std::optional<std::int32_t> number{}; ///< the last number that a prefix of this line held
  // What prefixes say of the place; empty and 0 where they do not.
  std::string_view host{};
  std::string_view pod{};
  std::int64_t pid = 0;
  bool from_kernel = false;             ///< a line of the kernel's log, through syslog
  bool has_prefix = false;
};

/// "[rank3]:", "3: ", "[1,3]<stderr>:", "(rank 3)", time stamps of collectors and of syslog, "(Worker pid=7, ip=10.0.0.1) ",
/// "[pod/worker-3/main] ", "pod | ", "host: [...", ANSI colours; up to six of them, in any order. `buffer` holds the text where
/// something had to be cut out of it, so it must outlive the result.
LogLine clean_log_line(std::string_view line, std::string& buffer);

}  // namespace lockstep
