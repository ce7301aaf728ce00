#include "log.h"

#include <unistd.h>

#include <atomic>

#include "text.h"

namespace lockstep::shim {

void say_recording_is_off(const char* reason, const char* path) noexcept {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  char line[1024];
  Text text(line);
  text.add("lockstep: recording is off: ").add(reason);
  if (path != nullptr && *path != '\0') text.add(" (").add(path).add(")");
  text.add("\n");
  // One write: lines of several ranks do not mix. Nobody is there to act on a failure.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.c_str(), text.length());
}

}  // namespace lockstep::shim
