// See the header.
#include "cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "report/printable.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kFirst{1000};  // what takes less needs no line
constexpr std::chrono::milliseconds kNext{300};
constexpr double kMega = 1e6;
constexpr std::size_t kNameColumns = 40;

}  // namespace

ProgressLine::ProgressLine() : is_terminal_(::isatty(STDERR_FILENO) == 1), next_(std::chrono::steady_clock::now() + kFirst) {}

ReadProgress ProgressLine::listener() {
  if (!is_terminal_) return {};
  return [this](std::string_view path, std::uint64_t taken, std::uint64_t size) { show(path, taken, size); };
}

void ProgressLine::show(std::string_view path, std::uint64_t taken, std::uint64_t size) {
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kNext;
  is_shown_ = true;
  const std::string of = size == 0 ? std::string{} : fmt::format(" of {:.0f}", static_cast<double>(size) / kMega);
  const std::string line = fmt::format("\r\x1b[Kreading {}: {:.0f}{} MB", cut_to_width(printable(path == "-" ? "standard input" : path), kNameColumns),
                                       static_cast<double>(taken) / kMega, of);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

void ProgressLine::clear() {
  const std::scoped_lock lock(mutex_);
  if (!is_shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  is_shown_ = false;
}

}  // namespace lockstep
