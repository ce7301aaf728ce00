// See the header.
#include "read/trace_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTraceSuffix = ".lst";
constexpr std::string_view kPointerSuffix = ".ptr";

struct Run {
  std::string name{};
  std::uint64_t youngest = 0;  ///< start of its youngest process
  std::vector<std::string> traces{};
  std::vector<std::string> pointers{};
};

/// "host.4711.18ed2ba7a753ab2c.lst": the last word before the suffix is when the process started; 0 = another name.
std::uint64_t start_in_name(std::string_view name) {
  name = name.substr(0, name.rfind('.'));
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return 0;
  std::uint64_t start = 0;
  const auto [end, error] = std::from_chars(name.data() + dot + 1, name.data() + name.size(), start, 16);
  return error == std::errc{} && end == name.data() + name.size() ? start : 0;
}

Run list_run(const fs::path& directory) {
  Run run{.name = directory.filename().string()};
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code ignored;
    if (!at->is_regular_file(ignored)) continue;
    if (name.ends_with(kTraceSuffix)) run.traces.push_back(at->path().string());
    else if (name.ends_with(kPointerSuffix)) run.pointers.push_back(at->path().string());
    else continue;
    run.youngest = std::max(run.youngest, start_in_name(name));
  }
  return run;
}

/// The file that a pointer names, where it can be seen from here; else why not.
std::pair<std::string, std::string> follow(const std::string& pointer) {
  std::ifstream file(pointer);
  std::string title;
  std::string host;
  std::string path;
  std::getline(file, title);
  std::getline(file, host);
  std::getline(file, path);
  if (title != "lockstep-pointer 1" || path.empty() || path.front() != '/' || !path.ends_with(kTraceSuffix)) {
    return {"", fmt::format("{}: is no pointer to a trace", pointer)};
  }
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    return {"", fmt::format("{}: the trace is on host {} as {} and cannot be seen from here: copy it beside the pointer", pointer,
                            host, path)};
  }
  return {path, ""};
}

}  // namespace

std::optional<TraceDirectory> find_newest_run(const std::string& path) {
  std::vector<Run> runs;
  std::error_code error;
  const Run own = list_run(path);
  if (!own.traces.empty() || !own.pointers.empty()) {
    runs.push_back(own);
    runs.back().name.clear();
  } else {
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
      std::error_code ignored;
      if (!at->is_directory(ignored)) continue;
      Run run = list_run(at->path());
      if (!run.traces.empty() || !run.pointers.empty()) runs.push_back(std::move(run));
    }
  }
  if (runs.empty()) return std::nullopt;
  std::ranges::sort(runs, [](const Run& a, const Run& b) { return std::pair(b.youngest, b.name) < std::pair(a.youngest, a.name); });
  TraceDirectory found{.run = runs.front().name, .files = std::move(runs.front().traces)};
  for (const std::string& pointer : runs.front().pointers) {
    // A copy beside its pointer is the nearer one.
    const std::string copy = pointer.substr(0, pointer.size() - kPointerSuffix.size()) + std::string(kTraceSuffix);
    if (std::ranges::find(found.files, copy) != found.files.end()) continue;
    auto [file, warning] = follow(pointer);
    if (!file.empty()) found.files.push_back(std::move(file));
    else found.warnings.push_back(std::move(warning));
  }
  std::ranges::sort(found.files);
  for (std::size_t i = 1; i < runs.size(); ++i) found.others.push_back(runs[i].name);
  return found;
}

}  // namespace lockstep
