#include "run_host.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lockstep::shim_test {
namespace {

[[noreturn]] void become(const std::vector<std::string>& command, const HostOptions& options, int out,
                         int err) {
  setpgid(0, 0);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  for (const auto& [name, value] : options.env) {
    if (value.empty())
      unsetenv(name.c_str());
    else
      setenv(name.c_str(), value.c_str(), 1);
  }
  if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) _exit(126);
  if (options.before_exec) options.before_exec();
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

void drain(int file, std::string& text, bool& open) {
  char buffer[4096];
  const ssize_t got = read(file, buffer, sizeof buffer);
  if (got > 0)
    text.append(buffer, static_cast<std::size_t>(got));
  else
    open = false;
}

/// One that has ended and was not waited for does not live.
bool lives(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(stat, text);
  const std::size_t state = text.rfind(')') + 2;
  return state < text.size() && text[state] != 'Z';
}

bool has_living_child(pid_t process) {
  std::error_code error;
  std::filesystem::directory_iterator threads("/proc/" + std::to_string(process) + "/task", error);
  for (; !error && threads != std::filesystem::directory_iterator{}; threads.increment(error)) {
    std::ifstream children(threads->path() / "children");
    for (pid_t child = 0; children >> child;) {
      if (lives(child)) return true;
    }
  }
  return false;
}

/// Watches a launcher: for how long it has had no child, once it had one.
class Childlessness {
 public:
  explicit Childlessness(pid_t process) : process_(process) {}

  bool lasts(std::chrono::seconds limit) {
    const auto now = std::chrono::steady_clock::now();
    if (has_living_child(process_)) {
      had_child_ = true;
      last_child_ = now;
      return false;
    }
    return had_child_ && now - last_child_ > limit;
  }

 private:
  pid_t process_;
  bool had_child_ = false;
  std::chrono::steady_clock::time_point last_child_{};
};

}  // namespace

HostRun run_host(const std::vector<std::string>& command, const HostOptions& options) {
  using Clock = std::chrono::steady_clock;
  HostRun run;
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return run;
  const auto started = Clock::now();
  const pid_t child = fork();
  if (child == 0) become(command, options, out[1], err[1]);
  close(out[1]);
  close(err[1]);
  bool out_open = true;
  bool err_open = true;
  Childlessness childlessness(child);
  while (out_open || err_open) {
    const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started).count();
    const auto left = options.timeout_s * 1000 - spent;
    pollfd files[2] = {{out_open ? out[0] : -1, POLLIN, 0}, {err_open ? err[0] : -1, POLLIN, 0}};
    const auto pause = options.is_launcher ? std::min<long>(left, 500) : left;
    if (left <= 0 || poll(files, 2, static_cast<int>(pause)) == 0) {
      run.timed_out = left <= 0;
      run.outlived_its_children = options.is_launcher && childlessness.lasts(std::chrono::seconds(10));
      if (!run.timed_out && !run.outlived_its_children) continue;
      kill(-child, SIGKILL);
      break;
    }
    if (files[0].revents != 0) drain(out[0], run.out, out_open);
    if (files[1].revents != 0) drain(err[0], run.err, err_open);
  }
  close(out[0]);
  close(err[0]);
  int status = 0;
  waitpid(child, &status, 0);
  run.seconds = std::chrono::duration<double>(Clock::now() - started).count();
  if (WIFEXITED(status)) run.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) run.signal = WTERMSIG(status);
  return run;
}

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX").string();
  if (mkdtemp(name.data()) != nullptr) path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

std::vector<std::pair<std::string, std::string>> recorded_into(const std::string& directory) {
  return {{"LD_PRELOAD", LOCKSTEP_SHIM_LIBRARY}, {"LOCKSTEP_DIR", directory}};
}

}  // namespace lockstep::shim_test
