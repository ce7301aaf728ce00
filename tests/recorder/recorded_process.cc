// See the header.
#include "recorded_process.h"

#include <cstdlib>
#include <filesystem>

#include "recorder.h"

namespace lockstep::recorder_test {
namespace {

/// Of the process: the recorder has one file.
struct Directory {
  std::string path;
  Directory() {
    std::string name = std::filesystem::temp_directory_path() / "recorder_test.XXXXXX";
    if (mkdtemp(name.data()) != nullptr) path = name;
  }
  ~Directory() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
};

}  // namespace

bool start() {
  static const Directory directory;
  static const bool started = [] {
    if (directory.path.empty() || shim::g_recorder.phase == nullptr) return false;
    setenv("LOCKSTEP_DIR", directory.path.c_str(), 1);
    setenv("LOCKSTEP_RING", "256K", 1);
    shim::read_config(shim::g_recorder.config);
    return shim::start_recorder();
  }();
  return started;
}

shim_test::ReadTrace read_back() { return shim_test::read_trace(shim::g_recorder.place.file); }

shim::Comm* make_comm(std::uint64_t handle) {
  const std::int32_t members[] = {0, 1};
  shim::NewComm made;
  made.handle = handle;
  made.nranks = 2;
  made.members = members;
  made.name = "pair";
  return shim::add_comm(made) == 0 ? nullptr : shim::find_comm(handle);
}

void call_once(shim::Comm* comm, const void* caller, std::uint64_t count) {
  shim::CallScope scope(__builtin_frame_address(0), caller);
  if (!scope.active()) return;
  scope.enter({.kind = OpKind::kAllReduce, .comm = comm, .count = count, .agreed_count = count});
  scope.finish(0);
}

}  // namespace lockstep::recorder_test
