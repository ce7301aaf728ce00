// Follows a command line to the program behind it.
#include "doctor/program_chain.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "doctor/environment.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxSteps = 12;

constexpr std::string_view kLaunchers[] = {"mpirun", "mpiexec",  "orterun",  "prterun", "prun",
                                           "srun",   "torchrun", "flux",     "jsrun",   "aprun",
                                           "ibrun",  "palsrun",  "deepspeed"};
constexpr std::string_view kWrappers[] = {
    "env",  "timeout",  "nice", "nohup", "numactl", "taskset", "stdbuf",    "setsid", "ionice",    "chrt",
    "time", "lockstep", "sudo", "doas",  "strace",  "ltrace",  "catchsegv", "xargs",  "hwloc-bind"};

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_executable_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

/// "mpirun" of "/opt/bin/mpirun.openmpi".
bool is_one_of(std::span<const std::string_view> names, std::string_view word) {
  const std::string_view base = base_name(word);
  return std::ranges::any_of(names, [base](std::string_view name) {
    return base.starts_with(name) && (base.size() == name.size() || base[name.size()] == '.');
  });
}

/// "#!/usr/bin/env -S python3 -u" gives {"/usr/bin/env", "-S", "python3", "-u"}.
std::vector<std::string> interpreter_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char start[2] = {};
  if (!file.read(start, 2) || start[0] != '#' || start[1] != '!') return {};
  std::string line(256, '\0');  // BINPRM_BUF_SIZE
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  line.erase(std::min(line.find('\n'), line.size()));
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string::npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

/// Index of the first argument that is a program; words.size() where there is none.
std::size_t find_next(std::span<const std::string> words) {
  for (std::size_t i = 1; i < words.size(); ++i)
    if (!words[i].starts_with('-') && !find_program(words[i]).empty()) return i;
  return words.size();
}

}  // namespace

std::string find_program(std::string_view word) {
  if (word.empty()) return "";
  if (word.find('/') != std::string_view::npos) {
    std::string path(word);
    return is_executable_file(path) ? path : "";
  }
  for (std::string_view list = environment("PATH"); !list.empty();) {
    const std::size_t end = std::min(list.find(':'), list.size());
    const std::string_view folder = end == 0 ? "." : list.substr(0, end);
    std::string path = std::string(folder) + "/" + std::string(word);
    if (is_executable_file(path)) return path;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return "";
}

std::vector<ProgramStep> program_chain(std::span<const std::string_view> command) {
  std::vector<ProgramStep> chain;
  std::vector<std::string> words(command.begin(), command.end());
  while (!words.empty() && chain.size() < kMaxSteps) {
    ProgramStep step{StepRole::kProgram, words[0], find_program(words[0])};
    const bool launcher = is_one_of(kLaunchers, words[0]);
    if (!step.path.empty() && (launcher || is_one_of(kWrappers, words[0]))) {
      if (const std::size_t next = find_next(words); next < words.size()) {
        step.role = launcher ? StepRole::kLauncher : StepRole::kWrapper;
        words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(next));
        chain.push_back(std::move(step));
        continue;
      }
    }
    words = step.path.empty() ? std::vector<std::string>() : interpreter_of(step.path);
    if (!words.empty()) step.role = StepRole::kScript;
    chain.push_back(std::move(step));
  }
  return chain;
}

}  // namespace lockstep
