// `lockstep rehearse`: becomes the command, with the stand-ins for NCCL and the CUDA runtime before the real ones, so that a program
// for GPUs runs, and hangs, on a machine without. Its settings pass to the stand-ins in the environment; tests/standin/README.md.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/recorder_library.h"
#include "cli/standin_libraries.h"
#include "cli/subcommand.h"
#include "doctor/opened_libraries.h"
#include "report/printable.h"

namespace lockstep {
namespace {

// As `lockstep run`, which has them from env(1).
constexpr int kExitCannotRehearse = 125;
constexpr int kExitNotExecutable = 126;
constexpr int kExitNotFound = 127;

constexpr std::string_view kWithValue[] = {"--p2p",    "--groups",  "--on-mismatch",  "--resident",
                                           "--devices", "--timeout", "--nccl-version", "--fault", "--dir"};

/// How many of `args` are ours: those before the first that is neither an option nor the value of one.
std::size_t count_own(std::span<const std::string_view> args) {
  std::size_t at = 0;
  while (at < args.size() && args[at].size() > 1 && args[at].starts_with('-') && args[at] != "--")
    at += std::ranges::find(kWithValue, args[at]) != std::end(kWithValue) ? 2U : 1U;
  return std::min(at, args.size());
}

int cannot_rehearse(std::string_view why) {
  fmt::print(stderr, "lockstep rehearse: {}\n", printable(why));
  return kExitCannotRehearse;
}

std::string present(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return value == nullptr ? "" : value;
}

bool set(const char* name, const std::string& value) { return setenv(name, value.c_str(), 1) == 0; }

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
  fmt::print(stderr, "lockstep rehearse: {}: {}\n", printable(words[0]), why);
  return error == ENOENT ? kExitNotFound : kExitNotExecutable;
}

struct Options {
  std::string p2p{};
  std::string groups{};
  std::string on_mismatch{};
  std::string fault{};
  std::string directory{};
  int resident = -1;
  int devices = 0;
  int nccl_version = 0;
  double timeout_s = 0;
  bool no_record = false;
  bool audit = false;
  bool no_audit = false;
};

/// Only what the options say is set: what the environment has stays.
bool export_settings(const Options& options) {
  bool done = true;
  const auto text = [&done](const char* name, const std::string& value) {
    if (!value.empty()) done = done && set(name, value);
  };
  text("LOCKSTEP_REHEARSE_P2P", options.p2p);
  text("LOCKSTEP_REHEARSE_GROUPS", options.groups);
  text("LOCKSTEP_REHEARSE_ON_MISMATCH", options.on_mismatch);
  text("LOCKSTEP_REHEARSE_FAULT", options.fault);
  text("LOCKSTEP_REHEARSE_RESIDENT", options.resident >= 0 ? std::to_string(options.resident) : "");
  text("LOCKSTEP_REHEARSE_DEVICES", options.devices > 0 ? std::to_string(options.devices) : "");
  text("LOCKSTEP_REHEARSE_NCCL_VERSION", options.nccl_version > 0 ? std::to_string(options.nccl_version) : "");
  text("LOCKSTEP_REHEARSE_TIMEOUT", options.timeout_s > 0 ? fmt::format("{}", options.timeout_s) : "");
  std::error_code error;
  if (!options.directory.empty()) text("LOCKSTEP_DIR", std::filesystem::absolute(options.directory, error).string());
  return done && !error;
}

int run_rehearse(std::span<const std::string_view> args) {
  Options options;
  std::vector<std::string> shown_in_help;
  CLI::App app;
  app.add_option("CMD", shown_in_help, "the command and its arguments");
  app.add_option("--p2p", options.p2p, "how a send outside of a group behaves: rendezvous (waits for its receive; default) or eager")
      ->check(CLI::IsMember({"rendezvous", "eager"}));
  app.add_option("--groups", options.groups,
                 "order of the calls of a group: strict (as written; default) or nccl226 (as NCCL sorts them since 2.26.2)")
      ->check(CLI::IsMember({"strict", "nccl226"}));
  app.add_option("--on-mismatch", options.on_mismatch,
                 "where ranks differ: hang (default), corrupt (go on with what there is, as NCCL may) or detect (say so and end)")
      ->check(CLI::IsMember({"hang", "corrupt", "detect"}));
  app.add_option("--resident", options.resident, "collectives that run at once on a device; 0: any number (default)")
      ->check(CLI::Range(0, 1024));
  app.add_option("--devices", options.devices, "devices of this machine; otherwise as many as the launcher starts ranks here, or 8")
      ->check(CLI::Range(1, 1024));
  app.add_option("--timeout", options.timeout_s, "end a process that has stood still for so many seconds; otherwise 60")
      ->check(CLI::PositiveNumber);
  app.add_option("--nccl-version", options.nccl_version, "what ncclGetVersion says, as NCCL codes it; otherwise 22809")
      ->check(CLI::Range(2000, 99999));
  app.add_option("--fault", options.fault, "something to go wrong: KIND:rank=R,comm=C,seq=S, KIND one of skip reorder delay kill");
  app.add_option("--dir", options.directory, "where the traces go, as for lockstep run");
  app.add_flag("--no-record", options.no_record, "do not preload the recorder");
  app.add_flag("--audit", options.audit,
               "see calls of NCCL also where a program opens it by name (LD_AUDIT); done by itself where the command names it");
  app.add_flag("--no-audit", options.no_audit, "never do so");
  app.footer(
      "Runs a program for GPUs that has no kernels of its own on a machine without a GPU: NCCL and the CUDA runtime are\n"
      "stand-ins that move and reduce data on the CPU, and it hangs there as it would. A process that stands still is\n"
      "ended by the timeout with one line and status 124. The exit status is otherwise that of CMD; 127 if it is not\n"
      "found, 126 if it cannot be executed, 125 if the stand-ins cannot be used. Works around a launcher\n"
      "(lockstep rehearse -- mpirun -n 4 ./prog) and inside one. Libraries that are linked statically are not replaced.");
  const std::size_t own = count_own(args);
  if (const auto done = parse_arguments(app, kRehearseSubcommand, args.first(own))) return *done;
  std::span<const std::string_view> command = args.subspan(own);
  if (!command.empty() && command[0] == "--") command = command.subspan(1);
  if (command.empty()) return usage_error(kRehearseSubcommand, "no command given");

  const Result<std::string> folder = find_standin_libraries();
  if (!folder) return cannot_rehearse(folder.error().message);
  if (const auto obstacle = search_path_obstacle(*folder); !obstacle.empty())
    return cannot_rehearse(fmt::format("cannot use {}: {}", *folder, obstacle));
  const std::string paths = present("LD_LIBRARY_PATH");
  bool done = set("LD_LIBRARY_PATH", paths.empty() || paths == *folder ? *folder
                                     : paths.starts_with(*folder + ":") ? paths
                                                                        : *folder + ":" + paths);
  if (!options.no_record) {
    const Result<std::string> library = find_recorder_library();
    if (!library) return cannot_rehearse(library.error().message + "; or use --no-record");
    if (const auto obstacle = preload_obstacle(*library); !obstacle.empty())
      return cannot_rehearse(fmt::format("cannot preload {}: {}", *library, obstacle));
    done = done && set("LD_PRELOAD", preload_with(*library, present("LD_PRELOAD")));
    if (!options.no_audit && (options.audit || !opens_nccl_by_name(command).empty())) {
      const std::string auditor = find_audit_library(*library);
      if (auditor.empty() && options.audit) return cannot_rehearse(fmt::format("no liblockstep_audit.so beside {}", *library));
      if (!auditor.empty()) done = done && set("LD_AUDIT", preload_with(auditor, present("LD_AUDIT")));
    }
  }
  if (!done || !export_settings(options)) return cannot_rehearse("cannot set the environment");
  return become(command);
}

}  // namespace

const Subcommand kRehearseSubcommand = {
    .name = "rehearse",
    .summary = "Run an NCCL program without a GPU, on stand-ins, with the recorder preloaded.",
    .usage = "rehearse [OPTION]... [--] CMD [ARGUMENT]...",
    .run = run_rehearse,
};

}  // namespace lockstep
