// Opening, recognising and joining the files of a job; see the header.
#include "read/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/mapped_file.h"
#include "read/foreign_file.h"
#include "read/formats.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct InputPath {
  std::string path{};
  bool is_named = true;  ///< by the user; false: found in a directory
  friend auto operator<=>(const InputPath&, const InputPath&) = default;
};

/// The files of a directory, or why there are none.
std::optional<Error> list_directory(const std::string& path, std::vector<InputPath>& inputs) {
  std::error_code error;
  const std::size_t before = inputs.size();
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) inputs.push_back({at->path().string(), false});
  }
  if (error) return Error{ErrorCode::kUnreadable, fmt::format("{}: {}", path, error.message())};
  if (inputs.size() == before) return Error{ErrorCode::kUnreadable, fmt::format("{}: no files in it", path)};
  return std::nullopt;
}

/// What went wrong with one file, or nothing.
std::optional<Error> read_file(const InputPath& input, JobIntake& intake) {
  const Result<MappedFile> file = MappedFile::open(input.path);
  if (!file) return file.error();
  const std::string_view contents = file->contents();
  const EvidenceFormat* format = find_format(contents);
  if (format == nullptr) {
    return Error{ErrorCode::kUnreadable,
                 fmt::format("{}: {}", input.path, what_it_looks_like(contents.substr(0, kHeadBytes)))};
  }
  const Result<std::size_t> programs = format->read({.path = input.path, .contents = contents}, intake);
  if (!programs) return programs.error();
  return std::nullopt;
}

/// All of them in one line.
Error join(const std::vector<Error>& errors) {
  Error all = errors.front();
  for (std::size_t i = 1; i < errors.size(); ++i) {
    all.message += "; " + errors[i].message;
    if (errors[i].code != all.code) all.code = ErrorCode::kUnreadable;
  }
  return all;
}

}  // namespace

Result<Job> load_job(std::span<const std::string> paths) {
  if (paths.empty()) return Error{ErrorCode::kUsage, "no input given"};
  JobIntake intake;
  std::vector<InputPath> inputs;
  std::vector<Error> errors;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (path != "-" && fs::is_directory(path, ignored)) {
      if (auto error = list_directory(path, inputs)) errors.push_back(std::move(*error));
    } else {
      inputs.push_back({path, true});
    }
  }
  std::ranges::sort(inputs);
  std::size_t used = 0;
  for (const InputPath& input : inputs) {
    auto error = read_file(input, intake);
    if (!error) {
      ++used;
      continue;
    }
    // A directory may hold anything besides evidence; a file that was named was meant to be read.
    if (input.is_named) intake.builder().set_incomplete();
    intake.builder().warn(error->message + ": not used");
    errors.push_back(std::move(*error));
  }
  if (used == 0) return join(errors);
  return std::move(intake).finish();
}

}  // namespace lockstep
