// See the header.
#include "torch/scope.h"

#include "torch/groups.h"
#include "torch/python_sites.h"
#include "torch/recording.h"
#include "trace_writer.h"

namespace lockstep::shim::torch {

constinit thread_local TorchThread t_torch __attribute__((tls_model("initial-exec"))) = {};

namespace {
constinit std::atomic<bool> g_installed{false};
}

bool python_is_installed() noexcept { return g_installed.load(std::memory_order_acquire); }
void set_python_installed() noexcept { g_installed.store(true, std::memory_order_release); }

PythonScope::PythonScope(PyObject* group) noexcept {
  if (!recording_is_possible()) return;
  begin_file();
  active_ = true;
  outermost_ = t_thread.frame == nullptr;
  site_before_ = t_thread.scope_site;
  group_before_ = t_torch.group;
  t_thread.scope_site = python_site(nullptr);
  if (group != nullptr) t_torch.group = comm_of_group(group);
}

void PythonScope::end(bool failed) noexcept {
  if (!active_) return;
  t_thread.scope_site = site_before_;
  t_torch.group = group_before_;
  if (__builtin_expect(failed && outermost_, 0)) close_left_call();
}

SiteOfCall::SiteOfCall(const void* frame) noexcept : before_(t_thread.scope_site) {
  if (before_ != 0 && t_torch.native == nullptr) return;
  if (!recording_is_possible()) return;
  // Inside another recorded call of this thread: nothing will be recorded.
  if (t_thread.frame != nullptr && frame < t_thread.frame) return;
  begin_file();
  t_thread.scope_site = site_from_outside(t_torch.native);
}

void name_below(Comm& comm) noexcept {
  comm.named = true;
  const Comm& group = *t_torch.group;
  // Another size: made for something else that the group needs.
  if (comm.id == 0 || group.record == nullptr || comm.nranks != group.nranks) return;
  const auto* ranges = reinterpret_cast<const trace::RankRange*>(group.record + 1);
  const auto* name = reinterpret_cast<const char*>(ranges + group.record->ranges + group.record->remote_ranges);
  if (*name != '\0') write_text(trace::SideKind::kCommName, comm.id, name);
}

void close_left_call() noexcept {
  TorchThread& torch = t_torch;
  if (torch.open_frame == nullptr || t_thread.frame != torch.open_frame) return;
  t_thread.frame = nullptr;
  torch.open_frame = nullptr;
  if (torch.open_comm != nullptr && torch.open_comm->inside.load(std::memory_order_relaxed) == t_thread.thread) {
    torch.open_comm->inside.store(0, std::memory_order_relaxed);
  }
  trace::CallRecord* record = torch.open;
  if (record == nullptr || !recorder_is_on() || t_thread.epoch != g_recorder.epoch || record->commit != torch.open_commit) return;
  record->result = 255;
  std::atomic_ref(record->return_ticks).store(ticks(), std::memory_order_release);
}

}  // namespace lockstep::shim::torch

// A personality routine without handlers. In the second phase (actions & 2) the frame is about to be left.
extern "C" [[gnu::visibility("hidden"), gnu::used]] int lockstep_torch_left(int, int actions, std::uint64_t, void*, void*) {
  using namespace lockstep::shim::torch;
  constexpr int kCleanupPhase = 2;
  constexpr int kContinueUnwind = 8;
  if ((actions & kCleanupPhase) != 0) {
    close_left_call();
    t_torch.native = nullptr;
    t_torch.reducer = nullptr;
  }
  return kContinueUnwind;
}
