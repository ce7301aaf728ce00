// `lockstep pack`: one small file of a run's traces, to hand over.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "pack/pack_writer.h"
#include "pack/redaction.h"
#include "pack/resolved_sites.h"
#include "pack/trace_copy.h"
#include "read/trace_directory.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kDefaultTail = 4096;

/// The one file that is written, private to its owner. Removed again unless it was finished.
class OutputFile {
 public:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    unlink(path_.c_str());
  }

  /// What went wrong; empty: nothing. An older file of that name is replaced.
  std::string open() {
    struct stat info {};
    if (lstat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return "not a regular file";
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return descriptor_ >= 0 && fchmod(descriptor_, 0600) == 0 ? "" : std::strerror(errno);
  }

  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

  bool finish() {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    if (close(descriptor) == 0) return true;
    unlink(path_.c_str());
    return false;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

struct PackOptions {
  std::string directory{};
  std::string output{};
  std::uint64_t tail = kDefaultTail;
  bool redact_paths = false;
  bool redact_hosts = false;
};

struct TraceFile {
  std::string path{};
  std::string name{};  ///< "<run>/<host>.<pid>.<start>.lst"
};

/// The traces of the newest run in a directory, or the one trace that was named.
Result<std::vector<TraceFile>> find_traces(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_regular_file(path, error))
    return std::vector<TraceFile>{{path, fs::path(path).filename().string()}};
  const auto found = find_newest_run(path);
  if (!found) {
    const bool readable = fs::is_directory(path, error);
    return Error{ErrorCode::kUnreadable, fmt::format("{}: {}", path,
                                                     readable ? "no traces in it"
                                                     : error  ? error.message()
                                                              : "no directory")};
  }
  for (const std::string& warning : found->warnings) print_warning(warning + ": not packed");
  if (!found->others.empty())
    print_warning(fmt::format("{} is packed, the newest of {} runs", found->run, found->others.size() + 1));
  const std::string run = found->run.empty() ? fs::canonical(path, error).filename().string() : found->run;
  std::vector<TraceFile> files;
  for (const std::string& file : found->files)
    files.push_back({file, run + "/" + fs::path(file).filename().string()});
  if (files.empty())
    return Error{ErrorCode::kUnreadable, fmt::format("{}: no trace of it can be seen from here", path)};
  return files;
}

int cannot_write(const std::string& path, std::string_view why) {
  print_warning(fmt::format("cannot write to {}: {}", path, why));
  return kExitInternal;
}

Result<TraceCopy> read_trace(const TraceFile& file, std::uint64_t tail) {
  const auto mapped = MappedFile::open(file.path);
  if (!mapped) return mapped.error();
  Result<TraceCopy> copy = copy_trace(mapped->contents(), file.path, tail);
  if (mapped->was_shortened())
    return Error{ErrorCode::kUnreadable, fmt::format("{}: was shortened while it was read", file.path)};
  return copy;
}

/// Which hosts the traces name; the traces that can be read.
std::vector<TraceFile> look_through(const std::vector<TraceFile>& files, Redaction& redaction,
                                    std::vector<Error>& errors) {
  std::vector<TraceFile> good;
  for (const TraceFile& file : files) {
    const auto trace = read_trace(file, 0);
    if (trace) {
      redaction.learn(*trace);
      good.push_back(file);
    } else {
      errors.push_back(trace.error());
    }
  }
  return good;
}

int write_pack(const PackOptions& options, const std::vector<TraceFile>& files, Redaction& redaction) {
  OutputFile output(options.output);
  if (const std::string why = output.open(); !why.empty()) return cannot_write(options.output, why);
  pack::FileHeader header;
  header.created_unix_ns = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                          std::chrono::system_clock::now().time_since_epoch())
                                                          .count());
  header.tail = options.tail;
  header.redacted =
      (options.redact_paths ? pack::kRedactedPaths : 0U) | (options.redact_hosts ? pack::kRedactedHosts : 0U);
  PackWriter writer(header, [&output](std::string_view bytes) { return output.write(bytes); });
  std::uint64_t calls = 0;
  NativeSites sites;
  for (const TraceFile& file : files) {
    auto trace = read_trace(file, options.tail);
    if (!trace) continue;  // vanished since it was looked through
    calls += trace->calls;
    add_resolved_sites(*trace, sites);
    redaction.apply(*trace);
    if (!writer.add(pack::MemberKind::kTrace,
                    header.redacted != 0 ? Redaction::member_name(*trace) : file.name, assemble(*trace)))
      return cannot_write(options.output,
                          errno != 0 ? std::strerror(errno) : "a trace is too large; use a smaller --tail");
  }
  if (!writer.finish() || !output.finish()) return cannot_write(options.output, std::strerror(errno));
  const bool written = write_stdout(fmt::format("{}: {} traces, {} calls, {} bytes\n", options.output,
                                                files.size(), calls, writer.bytes_written()));
  return written ? kExitConsistent : kExitInternal;
}

int run_pack(std::span<const std::string_view> args) {
  PackOptions options;
  std::vector<std::string> redact;
  CLI::App app;
  app.add_option(
         "DIR", options.directory,
         "directory with the traces of a run, which may still be going on; of several runs, the newest")
      ->required();
  app.add_option("-o", options.output, "the file to write, for its owner only; an older one is replaced")
      ->required();
  app.add_option("--redact", redact,
                 "paths, hosts, or both (paths,hosts): replace them by tokens, equal names by equal tokens")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"paths", "hosts"}));
  app.add_option("--tail", options.tail,
                 "keep at least the last N calls of each process, as far as its trace has them")
      ->check([](const std::string& text) {  // CLI11 would wrap "-1" around
        return text.starts_with('-') ? "a number of calls is wanted, not " + text : std::string();
      })
      ->capture_default_str();
  app.footer(
      "A pack holds what the traces hold, no contents of messages. lockstep check and show read it as it "
      "is.");
  if (const auto done = parse_arguments(app, kPackSubcommand, args)) return *done;
  options.redact_paths = std::ranges::find(redact, "paths") != redact.end();
  options.redact_hosts = std::ranges::find(redact, "hosts") != redact.end();

  const auto found = find_traces(options.directory);
  if (!found) return input_error(found.error());
  std::error_code ignored;
  for (const TraceFile& file : *found) {
    if (std::filesystem::equivalent(file.path, options.output, ignored))
      return usage_error(kPackSubcommand, fmt::format("{} is one of the traces", options.output));
  }
  Redaction redaction(options.redact_paths, options.redact_hosts);
  std::vector<Error> errors;
  const std::vector<TraceFile> files = look_through(*found, redaction, errors);
  if (files.empty()) return input_error(errors.front());
  for (const Error& error : errors) print_warning(error.message + ": not packed");
  errno = 0;
  return write_pack(options, files, redaction);
}

}  // namespace

const Subcommand kPackSubcommand = {
    .name = "pack",
    .summary = "Put the traces of a run into one small file to hand over.",
    .usage = "pack DIR -o FILE [--redact paths,hosts] [--tail N]",
    .run = run_pack,
};

}  // namespace lockstep
