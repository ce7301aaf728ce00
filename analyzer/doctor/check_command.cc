// The command: whether the recorder gets into the program behind it, and which calls of it can be seen.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/mapped_file.h"
#include "doctor/checks.h"
#include "doctor/elf_file.h"
#include "doctor/needed_libraries.h"
#include "doctor/opened_libraries.h"
#include "doctor/program_chain.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string file_name(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return (error ? fs::path(path) : real).filename().string();
}

/// Why the loader would ignore LD_PRELOAD for this program (secure execution, ld.so(8)); empty: it would not.
std::string secure_execution(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return "";
  if ((info.st_mode & S_ISUID) != 0 && info.st_uid != getuid()) return "set-user-id";
  if ((info.st_mode & S_ISGID) != 0 && (info.st_mode & S_IXGRP) != 0 && info.st_gid != getgid())
    return "set-group-id";
  if (getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0)
    return "given file capabilities";
  return "";
}

/// "3.11" of "python3.11"; empty: no Python, "?": one that does not say.
std::string python_version(const std::string& path) {
  const std::string name = file_name(path);
  if (!name.starts_with("python")) return "";
  const std::string version =
      name.substr(6, std::min(name.find_first_not_of("0123456789.", 6), name.size()) - 6);
  return version.empty() ? "?" : version;
}

bool is_shell(const std::string& path) {
  static constexpr std::string_view kShells[] = {"sh", "bash", "dash", "zsh", "ksh", "busybox"};
  return std::ranges::find(kShells, file_name(path)) != std::end(kShells);
}

/// What one file of the program has of communication libraries.
struct Communication {
  std::string mpi{};         ///< "Open MPI, /usr/lib/libmpi.so.40"
  std::string static_mpi{};  ///< file that has MPI inside
  std::string nccl{};
  std::string static_nccl{};
  std::string missing{};          ///< needed library that is not found
  bool looks_up_by_name = false;  ///< the program itself uses dlsym
};

constexpr std::string_view kNames[] = {"PMPI_Init", "ompi_mpi_comm_world", "ncclAllReduce", "dlsym"};

void look_at(const std::string& name, const std::string& path, bool is_program, Communication& found) {
  const auto file = MappedFile::open(path);
  if (!file) return;
  const ElfSymbols symbols = find_symbols(file->contents(), kNames);
  if (is_program) found.looks_up_by_name = symbols.imported.contains("dlsym");
  if (symbols.defined.contains("PMPI_Init")) {
    if (name.starts_with("libmpi") || name.starts_with("libpmpi")) {
      const bool open_mpi = symbols.defined.contains("ompi_mpi_comm_world");
      if (found.mpi.empty())
        found.mpi = fmt::format("{}, {}", open_mpi ? "Open MPI" : "MPICH or of its kind", path);
    } else {
      found.static_mpi = path;
    }
  }
  if (name.starts_with("libnccl"))
    found.nccl = path;
  else if (symbols.defined.contains("ncclAllReduce") ||
           (!symbols.imported.contains("ncclAllReduce") && has_nccl_inside(file->contents())))
    found.static_nccl = path;
}

Communication communication_of(const std::string& path, const ElfFile& elf) {
  Communication found;
  look_at("", path, true, found);
  for (const NeededLibrary& library : needed_libraries(path, elf)) {
    if (library.path.empty())
      found.missing += (found.missing.empty() ? "" : ", ") + library.name;
    else
      look_at(library.name, library.path, false, found);
  }
  return found;
}

bool records_nccl(const Result<std::string>& library) {
  if (!library) return false;
  const auto file = MappedFile::open(*library);
  constexpr std::string_view kNccl[] = {"ncclAllReduce"};
  return file && !find_symbols(file->contents(), kNccl).defined.empty();
}

void check_mpi(const Communication& found, std::vector<Check>& checks) {
  if (!found.mpi.empty()) {
    checks.push_back({CheckState::kOk, "MPI", found.mpi, ""});
  } else if (found.static_mpi.empty()) {
    checks.push_back(
        {CheckState::kNote, "MPI",
         "the program is not linked with MPI; MPI that a module or library brings in later is recorded", ""});
  }
  if (!found.static_mpi.empty())
    checks.push_back({CheckState::kProblem, "MPI",
                      fmt::format("linked statically into {}: its calls cannot be seen", found.static_mpi),
                      "link with the shared MPI library"});
}

void check_nccl(const Communication& found, bool recorded, std::vector<Check>& checks) {
  if (!found.static_nccl.empty())
    checks.push_back({CheckState::kProblem, "NCCL",
                      fmt::format("linked statically into {}: its calls cannot be seen", found.static_nccl),
                      "link with libnccl.so, or check what PyTorch's flight recorder or the job's log says"});
  if (found.nccl.empty()) return;
  if (recorded) {
    checks.push_back({CheckState::kOk, "NCCL", found.nccl, ""});
  } else {
    checks.push_back({CheckState::kProblem, "NCCL",
                      fmt::format("{}: NCCL calls are not recorded by this version", found.nccl),
                      "for now, check what PyTorch's flight recorder or the job's log says"});
  }
}

void check_calls_by_pointer(const Communication& found, const std::string& python,
                            std::vector<Check>& checks) {
  if (!python.empty()) {
    checks.push_back({CheckState::kNote, "Python",
                      fmt::format("Python {}: calls that extension modules such as mpi4py make are recorded "
                                  "with their native call sites; those of torch.distributed (gloo, NCCL) with lines of Python (3.9 or later) and process groups",
                                  python),
                      ""});
    checks.push_back({CheckState::kNote, "ctypes",
                      "calls made through ctypes or cffi use pointers that dlsym gave: those of MPI cannot be seen, those of NCCL "
                      "with lockstep run --audit",
                      ""});
  } else if (found.looks_up_by_name) {
    checks.push_back({CheckState::kNote, "dlsym",
                      "the program looks functions up by name: calls through pointers taken from an MPI "
                      "library's own handle cannot be seen",
                      ""});
  }
}

/// Whether the recorder gets into `path`; what it needs if so.
void check_program(const Result<std::string>& library, const std::string& path, std::vector<Check>& checks) {
  const auto problem = [&](std::string what, std::string fix) {
    checks.push_back({CheckState::kProblem, "program", fmt::format("{}: {}", path, what), std::move(fix)});
  };
  const auto file = MappedFile::open(path);
  if (!file) return problem("cannot be read, so nothing is known about it", "make it readable");
  const auto elf = read_elf(file->contents(), path);
  if (!elf) {
    checks.push_back(
        {CheckState::kProblem, "program", elf.error().message, "name the program that communicates"});
    return;
  }
  if (library) {
    const auto recorder_file = MappedFile::open(*library);
    const auto recorder = recorder_file ? read_elf(recorder_file->contents(), *library)
                                        : Result<ElfFile>(recorder_file.error());
    if (recorder && (recorder->is_64_bit != elf->is_64_bit || recorder->machine != elf->machine))
      return problem(fmt::format("a {}-bit program for {}; the recorder is for {}", elf->is_64_bit ? 64 : 32,
                                 machine_name(elf->machine), machine_name(recorder->machine)),
                     "build Lockstep for that machine and set LOCKSTEP_LIBRARY");
  }
  if (elf->interpreter.empty())
    return problem("statically linked, so the loader preloads nothing", "link it dynamically");

  const std::string python = python_version(path);
  const Communication found = communication_of(path, *elf);
  checks.push_back({CheckState::kOk, "program",
                    fmt::format("{}, {}, dynamically linked", path, machine_name(elf->machine)), ""});
  if (!found.missing.empty())
    checks.push_back({CheckState::kProblem, "needs",
                      fmt::format("not found: {}; the program would not start", found.missing),
                      "set LD_LIBRARY_PATH, or load the module that has them"});
  check_mpi(found, checks);
  check_nccl(found, records_nccl(library), checks);
  check_calls_by_pointer(found, python, checks);
  if (is_shell(path))
    checks.push_back({CheckState::kNote, "shell",
                      "what a shell starts is recorded too, but only a look at those programs tells more",
                      "lockstep doctor -- PROGRAM"});
}

}  // namespace

void check_command(const Result<std::string>& library, std::span<const std::string_view> command,
                   std::vector<Check>& checks) {
  const std::vector<ProgramStep> chain = program_chain(command);
  for (const ProgramStep& step : chain) {
    if (step.path.empty()) {
      checks.push_back({CheckState::kProblem, "program", fmt::format("{}: no such program", step.word),
                        "give its path, or mend PATH"});
      return;
    }
    // The kernel ignores these bits on scripts.
    const std::string secure = step.role == StepRole::kScript ? "" : secure_execution(step.path);
    if (!secure.empty()) {
      checks.push_back(
          {CheckState::kProblem, "rights",
           fmt::format("{} is {}: the loader ignores LD_PRELOAD, and what it starts does not get it",
                       step.path, secure),
           "put lockstep run behind it, directly before the program; or use a copy without that right"});
    }
    if (step.role == StepRole::kLauncher)
      checks.push_back({CheckState::kNote, "launcher",
                        fmt::format("{}: ranks on other hosts may not get this environment", step.word),
                        "lockstep run inside of it: mpirun -n 4 lockstep run -- ./prog"});
  }
  check_program(library, chain.back().path, checks);
  if (const std::string opener = opens_nccl_by_name(command); !opener.empty()) {
    checks.push_back({CheckState::kNote, "NCCL",
                      fmt::format("{} opens it by name: lockstep run lets the loader ask for those calls too (LD_AUDIT); "
                                  "with LD_PRELOAD alone they cannot be seen",
                                  opener),
                      "lockstep run -- CMD, or LD_AUDIT=.../liblockstep_audit.so beside LD_PRELOAD"});
  }
}

}  // namespace lockstep
