#include "run_host.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>

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
  while (out_open || err_open) {
    const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started).count();
    const auto left = options.timeout_s * 1000 - spent;
    pollfd files[2] = {{out_open ? out[0] : -1, POLLIN, 0}, {err_open ? err[0] : -1, POLLIN, 0}};
    if (left <= 0 || poll(files, 2, static_cast<int>(left)) == 0) {
      run.timed_out = true;
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
