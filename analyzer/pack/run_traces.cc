// FORMAT.md, section 6.
#include "pack/run_traces.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct Run {
  fs::path directory{};
  std::vector<fs::path> files{};  ///< .lst and .ptr
  std::uint64_t newest_start = 0;
};

/// The `<start>` of "<host>.<pid>.<start>.lst"; 0 where the name is another.
std::uint64_t start_in_name(const fs::path& file) {
  const std::string stem = file.stem().string();
  const char* const end = stem.data() + stem.size();
  std::uint64_t start = 0;
  const auto parsed = std::from_chars(stem.data() + stem.rfind('.') + 1, end, start, 16);
  return parsed.ec == std::errc{} && parsed.ptr == end ? start : 0;
}

Run list_run(const fs::path& directory) {
  Run run{.directory = directory};
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const fs::path& file = at->path();
    std::error_code ignored;
    if ((file.extension() != ".lst" && file.extension() != ".ptr") || !at->is_regular_file(ignored)) continue;
    run.files.push_back(file);
    run.newest_start = std::max(run.newest_start, start_in_name(file));
  }
  return run;
}

/// Where the trace is that a pointer file stands for, or why it cannot be had.
Result<std::string> follow_pointer(const fs::path& file) {
  std::ifstream stream(file);
  std::string first;
  std::string host;
  std::string path;
  if (!std::getline(stream, first) || !std::getline(stream, host) || !std::getline(stream, path) ||
      first != "lockstep-pointer 1")
    return Error{ErrorCode::kMalformed, fmt::format("{}: not a pointer to a trace", file.string())};
  utsname names{};
  std::error_code error;
  if (uname(&names) == 0 && host == names.nodename && fs::is_regular_file(path, error)) return path;
  return Error{ErrorCode::kUnreadable,
               fmt::format("{}: its trace is on host {}: {}", file.string(), host, path)};
}

RunTraces traces_of(const Run& run) {
  RunTraces traces;
  for (const fs::path& file : run.files) {
    const std::string name = (run.directory.filename() / file.stem()).string() + ".lst";
    if (file.extension() == ".lst") {
      traces.files.push_back({file.string(), name});
      continue;
    }
    const Result<std::string> target = follow_pointer(file);
    if (target)
      traces.files.push_back({*target, name});
    else
      traces.warnings.push_back(target.error().message + ": not used");
  }
  std::ranges::sort(traces.files, {}, &TraceFile::name);
  return traces;
}

}  // namespace

Result<RunTraces> find_run_traces(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error))
    return RunTraces{.files = {{path, fs::path(path).filename().string()}}};
  if (!fs::is_directory(path, error))
    return Error{ErrorCode::kUnreadable,
                 fmt::format("{}: {}", path, error ? error.message() : "no directory")};
  fs::path directory = fs::absolute(path, error).lexically_normal();
  if (!directory.has_filename()) directory = directory.parent_path();

  std::vector<Run> runs{list_run(directory)};
  if (runs[0].files.empty()) {
    runs.clear();
    for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
      std::error_code ignored;
      if (!at->is_directory(ignored)) continue;
      if (Run run = list_run(at->path()); !run.files.empty()) runs.push_back(std::move(run));
    }
  }
  if (runs.empty()) return Error{ErrorCode::kUnreadable, fmt::format("{}: no traces in it", path)};
  std::ranges::sort(runs, std::ranges::greater(), &Run::newest_start);
  RunTraces traces = traces_of(runs[0]);
  if (runs.size() > 1) {
    std::string others;
    for (std::size_t i = 1; i < runs.size(); ++i)
      others += (i == 1 ? "" : ", ") + runs[i].directory.filename().string();
    traces.warnings.insert(traces.warnings.begin(),
                           fmt::format("{}: the newest of {} runs is used; the others are {}",
                                       runs[0].directory.string(), runs.size(), others));
  }
  if (traces.files.empty()) return Error{ErrorCode::kUnreadable, traces.warnings.back()};
  return traces;
}

}  // namespace lockstep
