// The recorder itself, and the order of all checks.
#include "doctor/checks.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cstdlib>
#include <filesystem>

#include "base/mapped_file.h"
#include "cli/recorder_library.h"
#include "cli/ring_size.h"
#include "doctor/elf_file.h"
#include "doctor/environment.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Each path of a list as LD_PRELOAD has it.
std::vector<std::string_view> split_preload(std::string_view list) {
  std::vector<std::string_view> paths;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(" :"), list.size());
    if (end > 0) paths.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return paths;
}

void check_preload(std::vector<Check>& checks) {
  std::vector<std::string_view> others;
  std::vector<std::string_view> interposers;
  constexpr std::string_view kNames[] = {"MPI_Allreduce", "MPI_Send", "ncclAllReduce"};
  for (const std::string_view path : split_preload(environment("LD_PRELOAD"))) {
    if (path.ends_with("/liblockstep.so")) continue;
    others.push_back(path);
    const auto file = MappedFile::open(std::string(path));
    if (file && !find_symbols(file->contents(), kNames).defined.empty()) interposers.push_back(path);
  }
  if (!interposers.empty()) {
    checks.push_back({CheckState::kNote, "LD_PRELOAD",
                      fmt::format("{} also stands in for communication calls; the recorder comes first and "
                                  "sees them as the program makes them",
                                  fmt::join(interposers, ", ")),
                      ""});
  } else if (!others.empty()) {
    checks.push_back({CheckState::kOk, "LD_PRELOAD",
                      fmt::format("{} is kept, behind the recorder", fmt::join(others, ", ")), ""});
  }
}

}  // namespace

std::string_view check_state_name(CheckState state) {
  switch (state) {
    case CheckState::kOk:
      return "ok";
    case CheckState::kNote:
      return "note";
    case CheckState::kProblem:
      return "problem";
  }
  return "problem";
}

void check_library(const Result<std::string>& library, std::vector<Check>& checks) {
  const auto problem = [&checks](std::string what, std::string fix) {
    checks.push_back({CheckState::kProblem, "library", std::move(what), std::move(fix)});
  };
  if (!library)
    return problem(library.error().message,
                   "install Lockstep as a whole, or set LOCKSTEP_LIBRARY to liblockstep.so");
  if (const auto obstacle = preload_obstacle(*library); !obstacle.empty())
    return problem(fmt::format("{}: {}", *library, obstacle),
                   "set LOCKSTEP_LIBRARY to a path without such characters, a link will do");
  const auto file = MappedFile::open(*library);
  if (!file) return problem(file.error().message, "make the file readable");
  const auto elf = read_elf(file->contents(), *library);
  if (!elf) return problem(elf.error().message, "set LOCKSTEP_LIBRARY to liblockstep.so");
  constexpr std::string_view kNames[] = {"MPI_Init", "ncclAllReduce"};
  if (!elf->is_shared || find_symbols(file->contents(), kNames).defined.empty())
    return problem(fmt::format("{} is not Lockstep's recorder", *library),
                   "set LOCKSTEP_LIBRARY to liblockstep.so");
  struct statvfs mount {};
  if (statvfs(library->c_str(), &mount) == 0 && (mount.f_flag & ST_NOEXEC) != 0)
    return problem(fmt::format("{} lies on a file system mounted noexec: the loader cannot map it", *library),
                   "copy it to another file system and set LOCKSTEP_LIBRARY");
  checks.push_back(
      {CheckState::kOk, "library", fmt::format("{}, {}", *library, machine_name(elf->machine)), ""});
}

void check_environment(std::vector<Check>& checks) {
  if (environment("LOCKSTEP") == "0")
    checks.push_back(
        {CheckState::kProblem, "LOCKSTEP", "LOCKSTEP=0 switches the recorder off", "unset LOCKSTEP"});
  const std::string_view ring = environment("LOCKSTEP_RING");
  if (!ring.empty() && !parse_ring_size(ring))
    checks.push_back(
        {CheckState::kNote, "LOCKSTEP_RING",
         fmt::format("'{}' is no size from 64K to 16G: the recorder takes the nearest of them, or 16M", ring),
         "LOCKSTEP_RING=64M, for example"});
  const std::string_view mode = environment("LOCKSTEP_MODE");
  if (!mode.empty() && (mode.size() > 4 || mode.find_first_not_of("01234567") != std::string_view::npos))
    checks.push_back({CheckState::kNote, "LOCKSTEP_MODE",
                      fmt::format("'{}' is no octal mode: files get 600", mode),
                      "LOCKSTEP_MODE=640, for example"});
  check_preload(checks);
}

std::vector<Check> check_recording(const Result<std::string>& library,
                                   std::span<const std::string_view> command) {
  std::vector<Check> checks;
  check_library(library, checks);
  check_environment(checks);
  if (!command.empty()) check_command(library, command, checks);
  check_directory(checks);
  return checks;
}

}  // namespace lockstep
