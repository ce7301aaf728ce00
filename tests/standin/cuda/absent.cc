// What the stand-in for the CUDA runtime cannot do: a program that calls it is told once which function that was, on stderr, and gets an
// error. Without these the loader would end it, at its start or at the call, without a word about the stand-in.
#include <unistd.h>

#include <atomic>
#include <string>

#include "cuda/export.h"

namespace lockstep::standin {

void say_once(std::atomic<bool>& said, const char* what) {
  if (said.exchange(true)) return;
  const std::string line = "lockstep rehearse: process " + std::to_string(getpid()) + " " + what + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

namespace {

cudaError_t absent(const char* name, std::atomic<bool>& said) {
  const std::string what = std::string("calls ") + name + ", which the stand-in for the CUDA runtime does not have: the call fails";
  say_once(said, what.c_str());
  return remember(kCudaNotSupported);
}

}  // namespace

}  // namespace lockstep::standin

#define CUDA_ABSENT(name)                                \
  CUDA_EXPORT cudaError_t name() {                       \
    static std::atomic<bool> said{false};                \
    return lockstep::standin::absent(#name, said);       \
  }
#include "cuda/absent.def"
#undef CUDA_ABSENT
