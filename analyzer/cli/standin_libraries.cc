// Looks for the stand-ins beside the command.
#include "cli/standin_libraries.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibraryName = "libnccl.so.2";

// From the folder of the command: installed (as configured, then the usual places), build tree.
constexpr std::string_view kPlaces[] = {LOCKSTEP_STANDIN_FROM_COMMAND, "../lib/lockstep/standin", "../lib64/lockstep/standin",
                                        "../tests/standin/lib"};

}  // namespace

Result<std::string> find_standin_libraries() {
  std::error_code error;
  const char* given = std::getenv("LOCKSTEP_STANDIN");  // NOLINT(concurrency-mt-unsafe): one thread
  if (given != nullptr && *given != '\0') {
    if (!fs::is_regular_file(fs::path(given) / kLibraryName, error))
      return Error{ErrorCode::kUnreadable, fmt::format("LOCKSTEP_STANDIN: no {} in {}", kLibraryName, given)};
    return fs::absolute(given, error).lexically_normal().string();
  }
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  for (const std::string_view place : kPlaces) {
    const fs::path candidate = (command.parent_path() / place).lexically_normal();
    if (fs::is_regular_file(candidate / kLibraryName, error)) return candidate.string();
  }
  return Error{ErrorCode::kUnreadable, fmt::format("cannot find the stand-in {} beside {}; set LOCKSTEP_STANDIN to its folder",
                                                   kLibraryName, command.string())};
}

std::string_view search_path_obstacle(std::string_view path) {
  if (path.find_first_of(";:") != std::string_view::npos)
    return "its path has a colon or semicolon, which separate folders in LD_LIBRARY_PATH";
  if (path.find('$') != std::string_view::npos) return "its path has a dollar sign, which the loader would expand";
  return "";
}

}  // namespace lockstep
