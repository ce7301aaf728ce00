// Runs a program as a test wants it: with an environment, limits and a time limit, and everything it said and
// how it ended.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::shim_test {

struct HostRun {
  int status = -1;  ///< exit status; -1 when a signal ended it
  int signal = 0;
  bool timed_out = false;  ///< this helper killed it
  bool outlived_its_children = false;  ///< this helper killed it, see HostOptions::is_launcher
  double seconds = 0;
  std::string out{};
  std::string err{};
};

struct HostOptions {
  std::vector<std::pair<std::string, std::string>>
      env{};  ///< in addition to ours; an empty value removes the name
  int timeout_s = 60;
  std::string directory{};              ///< working directory
  std::function<void()> before_exec{};  ///< in the child: limits, umask
  bool is_launcher = false;  ///< of processes that are judged, not it: killed where it stays ten seconds after the last of them has ended
};

/// Never throws; a program that cannot be started has status 127.
HostRun run_host(const std::vector<std::string>& command, const HostOptions& options = {});

/// A fresh directory under the system's temporary one, removed at the end of its life.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// LD_PRELOAD of the recorder and a trace directory, for HostOptions::env.
std::vector<std::pair<std::string, std::string>> recorded_into(const std::string& directory);

}  // namespace lockstep::shim_test
