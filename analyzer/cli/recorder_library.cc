// Looks for liblockstep.so beside the command.
#include "cli/recorder_library.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibraryName = "liblockstep.so";

// From the folder of the command: installed (as configured, then the usual places), build tree.
constexpr std::string_view kPlaces[] = {LOCKSTEP_LIBRARY_FROM_COMMAND, "../lib/lockstep", "../lib",
                                        "../lib64", "../libshim"};

}  // namespace

Result<std::string> find_recorder_library() {
  std::error_code error;
  const char* given = std::getenv("LOCKSTEP_LIBRARY");  // NOLINT(concurrency-mt-unsafe): one thread
  if (given != nullptr && *given != '\0') {
    if (!fs::is_regular_file(given, error))
      return Error{ErrorCode::kUnreadable, fmt::format("LOCKSTEP_LIBRARY: no file {}", given)};
    return fs::absolute(given, error).string();
  }
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  for (const std::string_view place : kPlaces) {
    const fs::path candidate = (command.parent_path() / place / kLibraryName).lexically_normal();
    if (fs::is_regular_file(candidate, error)) return candidate.string();
  }
  return Error{ErrorCode::kUnreadable,
               fmt::format("cannot find {} beside {}; set LOCKSTEP_LIBRARY to its path", kLibraryName,
                           command.string())};
}

std::string find_audit_library(const std::string& recorder) {
  std::error_code error;
  const fs::path candidate = fs::path(recorder).parent_path() / "liblockstep_audit.so";
  return fs::is_regular_file(candidate, error) ? candidate.string() : "";
}

std::string preload_with(const std::string& library, std::string_view present) {
  if (present.empty()) return library;
  const bool first =
      present.starts_with(library) &&
      (present.size() == library.size() || present[library.size()] == ':' || present[library.size()] == ' ');
  return first ? std::string(present) : fmt::format("{}:{}", library, present);
}

std::string_view preload_obstacle(std::string_view path) {
  if (path.find_first_of(" :") != std::string_view::npos)
    return "its path has a space or colon, which separate paths in LD_PRELOAD";
  if (path.find('$') != std::string_view::npos)
    return "its path has a dollar sign, which the loader would expand";
  return "";
}

}  // namespace lockstep
