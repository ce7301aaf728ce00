#include "call_scope.h"

namespace lockstep::shim {

bool enter_slowly(ThreadState& thread, const void* frame) noexcept {
  const bool on = recorder_is_on();
  if (thread.frame != nullptr && on && thread.epoch == g_recorder.epoch) {
    // Stacks grow down: a frame at or above the recorded one means that the recorded call is no longer on the
    // stack. It was left by longjmp or by an exception that an error handler threw.
    if (frame < thread.frame) return false;
    thread.frame = nullptr;
    mark_state(trace::kStateNested);
  }
  if (!on) {
    if (g_recorder.phase == nullptr || g_recorder.phase->load(std::memory_order_acquire) != kPhaseNew)
      return false;
    if (!start_recorder()) return false;
  }
  if (thread.epoch != g_recorder.epoch) {
    thread.frame = nullptr;
    thread.next = nullptr;
    thread.end = nullptr;
    thread.polls = 0;
    if (!open_block(thread)) return false;
  }
  return true;
}

bool CallScope::fold_poll(OpKind kind, std::uint64_t key) noexcept {
  ThreadState& thread = t_thread;
  for (std::uint32_t i = 0; i < thread.polls; ++i) {
    trace::CallRecord* last = thread.poll[i].record;
    if (thread.poll[i].key != key || last->kind != static_cast<std::uint8_t>(kind) ||
        last->call_site != site_) {
      continue;
    }
    // What was reserved for a record of its own goes back: a hole would hide everything behind it in this
    // block.
    if (record_ != nullptr) thread.next = reinterpret_cast<std::byte*>(record_);
    record_ = last;
    folded_ = true;
    std::atomic_ref(last->return_ticks).store(0, std::memory_order_relaxed);
    std::atomic_ref(last->count).store(last->count + 1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void CallScope::keep_poll(std::uint64_t key) noexcept {
  ThreadState& thread = t_thread;
  if (folded_) return;
  constexpr std::uint32_t kPolls = sizeof thread.poll / sizeof thread.poll[0];
  if (thread.polls == kPolls) thread.polls = 0;
  thread.poll[thread.polls++] = Poll{record_, key};
}

}  // namespace lockstep::shim
