// Writes results and notices when they do not arrive.
#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "report/printable.h"

namespace lockstep {
namespace {

void (*g_first_sigpipe)(int) = SIG_DFL;

void complain(std::string_view where) {
  const int error = errno;
  fmt::print(stderr, "lockstep: cannot write to {}: {}\n", printable(where), std::strerror(error));
}

}  // namespace

bool write_stdout(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    complain("standard output");
    return false;
  }
  return true;
}

bool write_file(const std::string& path, std::string_view text) {
  if (path == "-") return write_stdout(text);
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) {
    complain(path);
    return false;
  }
  const bool written =
      std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  if (!written) complain(path);
  // Network file systems report a full disk only here.
  const bool closed = std::fclose(file) == 0;
  if (written && !closed) complain(path);
  return written && closed;
}

void print_warning(std::string_view message) {
  fmt::print(stderr, "lockstep: warning: {}\n", printable(message));
}

void ignore_broken_pipes() { g_first_sigpipe = std::signal(SIGPIPE, SIG_IGN); }

void restore_broken_pipes() { std::signal(SIGPIPE, g_first_sigpipe); }

bool stdout_takes_colour() {
  const char* no_colour = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): one thread
  return isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

}  // namespace lockstep
