// `lockstep run`: becomes the command, with the recorder preloaded. Nothing of Lockstep stays between the
// caller and it.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/recorder_library.h"
#include "cli/ring_size.h"
#include "cli/subcommand.h"
#include "doctor/opened_libraries.h"
#include "report/printable.h"

namespace lockstep {
namespace {

// As env(1), nohup(1) and timeout(1) do it.
constexpr int kExitCannotRecord = 125;
constexpr int kExitNotExecutable = 126;
constexpr int kExitNotFound = 127;

/// How many of `args` are ours: those before the first that is neither an option nor the value of one.
std::size_t count_own(std::span<const std::string_view> args) {
  std::size_t at = 0;
  while (at < args.size() && args[at].size() > 1 && args[at].starts_with('-') && args[at] != "--")
    at += args[at] == "--dir" || args[at] == "--ring" ? 2U : 1U;
  return std::min(at, args.size());
}

int cannot_record(std::string_view why) {
  fmt::print(stderr, "lockstep run: {}\n", printable(why));
  return kExitCannotRecord;
}

/// Returns only if that failed.
int become(std::span<const std::string_view> command) {
  std::vector<std::string> words(command.begin(), command.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  restore_broken_pipes();
  execvp(argv[0], argv.data());
  const int error = errno;
  const char* why = error == ENOENT ? "command not found" : std::strerror(error);
  fmt::print(stderr, "lockstep run: {}: {}\n", printable(words[0]), why);
  return error == ENOENT ? kExitNotFound : kExitNotExecutable;
}

int run_run(std::span<const std::string_view> args) {
  std::string directory;
  std::string ring;
  std::vector<std::string> shown_in_help;
  CLI::App app;
  app.add_option("CMD", shown_in_help, "the command and its arguments");
  app.add_option(
      "--dir", directory,
      "where the traces go (LOCKSTEP_DIR); otherwise lockstep-trace in the working directory of the program");
  app.add_option("--ring", ring,
                 "room for the calls of each process (LOCKSTEP_RING), 64K to 16G; otherwise 16M");
  bool audit = false;
  bool no_audit = false;
  app.add_flag("--audit", audit,
               "see calls of NCCL also where a program opens it by name (LD_AUDIT); done by itself where the command names it");
  app.add_flag("--no-audit", no_audit, "never do so");
  app.footer(
      "The exit status is that of CMD; 127 if it is not found, 126 if it cannot be executed, 125 if the "
      "recorder\n"
      "cannot be preloaded. Works around a launcher (lockstep run -- mpirun -n 4 ./prog) and inside one\n"
      "(mpirun -n 4 lockstep run -- ./prog); the second form also reaches ranks on other hosts.");
  const std::size_t own = count_own(args);
  if (const auto done = parse_arguments(app, kRunSubcommand, args.first(own))) return *done;
  std::span<const std::string_view> command = args.subspan(own);
  if (!command.empty() && command[0] == "--") command = command.subspan(1);
  if (command.empty()) return usage_error(kRunSubcommand, "no command given");
  if (!ring.empty() && !parse_ring_size(ring))
    return usage_error(kRunSubcommand, fmt::format("'{}' is no size from 64K to 16G", ring));

  const Result<std::string> library = find_recorder_library();
  if (!library) return cannot_record(library.error().message);
  if (const auto obstacle = preload_obstacle(*library); !obstacle.empty())
    return cannot_record(fmt::format("cannot preload {}: {}", *library, obstacle));
  const char* present = std::getenv("LD_PRELOAD");  // NOLINT(concurrency-mt-unsafe): one thread
  bool set = setenv("LD_PRELOAD", preload_with(*library, present == nullptr ? "" : present).c_str(), 1) == 0;
  // The processes of a job may have other working directories than this one.
  std::error_code error;
  if (!directory.empty())
    set = set && setenv("LOCKSTEP_DIR", std::filesystem::absolute(directory, error).c_str(), 1) == 0;
  if (!ring.empty()) set = set && setenv("LOCKSTEP_RING", ring.c_str(), 1) == 0;
  if (!no_audit && (audit || !opens_nccl_by_name(command).empty())) {
    const std::string auditor = find_audit_library(*library);
    if (auditor.empty() && audit) return cannot_record(fmt::format("no liblockstep_audit.so beside {}", *library));
    const char* others = std::getenv("LD_AUDIT");  // NOLINT(concurrency-mt-unsafe): one thread
    if (!auditor.empty()) set = set && setenv("LD_AUDIT", preload_with(auditor, others == nullptr ? "" : others).c_str(), 1) == 0;
  }
  if (!set || error) return cannot_record("cannot set the environment");
  return become(command);
}

}  // namespace

const Subcommand kRunSubcommand = {
    .name = "run",
    .summary = "Run a command with the recorder preloaded; its status and signals are its own.",
    .usage = "run [--dir DIR] [--ring SIZE] [--audit|--no-audit] [--] CMD [ARGUMENT]...",
    .run = run_run,
};

}  // namespace lockstep
