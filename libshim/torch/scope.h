// The Python call that a thread is inside: its site and process group, which the calls of backends below it take over.
#pragma once

#include <cstdint>

#include "call_scope.h"
#include "torch/python_api.h"

namespace lockstep::shim::torch {

/// Backends that one process group has at most; others are known when a call of Python code comes to them.
inline constexpr std::uint32_t kMostBackends = 8;

/// What one thread keeps. Trivial, initial-exec and small, as ThreadState is.
struct TorchThread {
  Comm* group;         ///< of the process group whose method runs; null = none
  const char* native;  ///< what torch's C++ is about, where it makes calls by itself; null = nothing known
  const void* reducer; ///< DistributedDataParallel's, while it issues what it will wait for at the end of the backward pass
  // The recorded call that is running, should an exception leave it.
  trace::CallRecord* open;
  const void* open_frame;
  Comm* open_comm;
  std::uint32_t open_commit;
  std::uint32_t open_request;  ///< of the call that runs; the Works of calls that it makes itself stand for it too
  std::uint32_t constructing;  ///< depth of functions that make a group
  std::uint32_t backends;      ///< made on this thread meanwhile; may be more than fit
  const void* backend[kMostBackends];
  bool is_worker;              ///< a thread of a backend, which does what was issued: not the program
};
extern constinit thread_local TorchThread t_torch __attribute__((tls_model("initial-exec")));

/// A communicator of a library below is used for the group whose method runs: gives it that name in the trace. Cold.
void name_below(Comm& comm) noexcept;

/// Recording is on, or begins now.
inline bool recording_is_possible() noexcept {
  if (__builtin_expect(recorder_is_on(), 1)) return true;
  return g_recorder.phase != nullptr && g_recorder.phase->load(std::memory_order_acquire) == kPhaseNew && start_recorder();
}

/// Whether the Python side was found and may be used.
bool python_is_installed() noexcept;
void set_python_installed() noexcept;

/// Stands around a call of torch's binding that was made by Python code; the interpreter's lock is held at both ends.
class PythonScope {
 public:
  /// `group` is the process group that the call is about, or null.
  explicit PythonScope(PyObject* group) noexcept;
  /// `failed`: an exception came out of it; what was recorded below and never returned was left by it.
  void end(bool failed) noexcept;

 private:
  std::uint32_t site_before_ = 0;
  Comm* group_before_ = nullptr;
  bool active_ = false;
  bool outermost_ = false;
};

/// The site for a call of a backend while it is entered: the scope's, else what can be found out from here.
class SiteOfCall {
 public:
  explicit SiteOfCall(const void* frame) noexcept;
  void restore() noexcept { t_thread.scope_site = before_; }

 private:
  std::uint32_t before_;
};

/// The recorded call that an exception left, if there is one, ends here.
void close_left_call() noexcept;

// To stand in each function that calls torch's C++: when an exception goes through it, the unwinder, which is the host's, tells us. Nothing of a
// C++ runtime is needed, and nothing is caught.
#define LOCKSTEP_TELL_WHEN_LEFT() __asm__ volatile(".cfi_personality 0x1b, lockstep_torch_left")

}  // namespace lockstep::shim::torch
