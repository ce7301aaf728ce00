// See the header.
#include "read/trace_process.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Number of the word `index` (from 0) of a text; nothing where there is none.
std::optional<std::uint64_t> number_at(std::string_view text, int index) {
  for (std::size_t at = 0; at < text.size(); --index) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (index == 0) {
      std::uint64_t value = 0;
      const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, value);
      return error == std::errc{} ? std::optional(value) : std::nullopt;
    }
    at = end + 1;
  }
  return std::nullopt;
}

/// When a process of this machine started, in seconds since 1970; nothing for a process that is gone, or a zombie.
std::optional<double> start_of_process(std::int32_t pid) {
  const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return std::nullopt;
  const std::string_view rest = std::string_view(stat).substr(name_end + 2);
  if (rest.front() == 'Z' || rest.front() == 'X') return std::nullopt;
  const auto ticks = number_at(rest, 19);  // field 22 of the line: start time in clock ticks since boot
  const std::string kernel = read_text("/proc/stat");
  const std::size_t boot = kernel.find("btime ");
  if (!ticks || boot == std::string::npos) return std::nullopt;
  const auto boot_seconds = number_at(std::string_view(kernel).substr(boot, kernel.find('\n', boot) - boot), 1);
  if (!boot_seconds) return std::nullopt;
  return static_cast<double>(*boot_seconds) + static_cast<double>(*ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

}  // namespace

bool is_alive(const TraceTables& tables) {
  const std::int32_t pid = tables.header.pid;
  if (tables.is_copy) return false;
  if (tables.header.end != trace::ProcessEnd::kUnknown || pid <= 0 || tables.host.empty()) return false;
  if (tables.host != host_name()) return false;
  if (::kill(pid, 0) != 0 && errno != EPERM) return false;
  const auto started = start_of_process(pid);
  // The boot time is whole seconds: a pid that was given to another process since is younger by far more.
  constexpr double kSlackSeconds = 2.0;
  return started && *started <= static_cast<double>(tables.header.start_unix_ns) * 1e-9 + kSlackSeconds;
}

ProgramEnd end_of_process(const TraceTables& tables) {
  const trace::FileHeader& header = tables.header;
  if (header.aborted != 0) return {EndKind::kExited, header.abort_code & 0xff};
  if (header.end == trace::ProcessEnd::kExited) return {EndKind::kExited, header.exit_status & 0xff};
  // It made its last call of the library; how the process ended says nothing about its calls.
  if (header.finalized == 2) return {EndKind::kExited, ProgramEnd::kStatusUnknown};
  if (is_alive(tables)) return {EndKind::kRunning, 0};
  return {};
}

}  // namespace lockstep
