// What is recorded of each CUDA call: the members that rows of functions.def name. Nothing while no communicator work is under way.
#pragma once

#include <cstdint>

#include "call_scope.h"
#include "cuda/streams.h"

namespace lockstep::shim::cuda {

/// The default stream of the calling thread, as programs compiled for one have it.
inline CUstream_st* per_thread(CUstream_st* stream) noexcept {
  return reinterpret_cast<std::uint64_t>(stream) == 0
             ? reinterpret_cast<CUstream_st*>(reinterpret_cast<std::uint64_t>(&t_device) | 1)
             : stream;
}

class Waiting {
 public:
  Waiting(const void* frame, const void* caller) noexcept : frame_(frame), caller_(caller) {}
  ~Waiting() = default;
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  void set_device(int device) noexcept {
    device_ = device;
    after_ = After::kDevice;
  }
  void device_sync() noexcept {
    if (!matters()) return;
    if (!any_stream_is_busy()) return;
    enter(OpKind::kDeviceSync, nullptr, 0);
    after_ = After::kAllIdle;
  }
  void stream_sync(CUstream_st* stream) noexcept {
    if (!matters()) return;
    stream_ = find_stream(stream, false);
    if (stream_ == nullptr || stream_->busy.load(std::memory_order_relaxed) == 0) return;
    enter(OpKind::kStreamSync, stream, 0);
    after_ = After::kStreamIdle;
  }
  void event_sync(CUevent_st* event) noexcept {
    if (!matters()) return;
    event_ = &event_slot(event);
    if (!is_kept(*event_, event) || event_->busy.load(std::memory_order_relaxed) == 0) return;
    enter(OpKind::kEventSync, nullptr, reinterpret_cast<std::uint64_t>(event));
    after_ = After::kEventIdle;
  }
  void event_record(CUevent_st* event, CUstream_st* stream) noexcept {
    if (!follows()) return;
    Event& slot = event_slot(event);
    const Stream* from = find_stream(stream, false);
    const std::uint32_t capture = from != nullptr ? from->capture.load(std::memory_order_relaxed) : 0;
    const std::uint32_t busy = from != nullptr ? from->busy.load(std::memory_order_relaxed) : 0;
    if (busy == 0 && capture == 0) {
      if (is_kept(slot, event)) slot.handle.store(0, std::memory_order_relaxed);
      return;
    }
    slot.handle.store(0, std::memory_order_relaxed);
    slot.busy.store(busy, std::memory_order_relaxed);
    slot.capture.store(capture, std::memory_order_relaxed);
    slot.handle.store(reinterpret_cast<std::uint64_t>(event), std::memory_order_relaxed);
    if (busy != 0 && matters()) enter(OpKind::kEventRecord, stream, reinterpret_cast<std::uint64_t>(event), capture);
  }
  void stream_wait(CUstream_st* stream, CUevent_st* event) noexcept {
    if (!follows()) return;
    const Event& slot = event_slot(event);
    if (!is_kept(slot, event)) return;
    const std::uint32_t capture = slot.capture.load(std::memory_order_relaxed);
    const bool busy = slot.busy.load(std::memory_order_relaxed) != 0;
    if (Stream* to = find_stream(stream, true)) {
      if (busy) to->busy.store(1, std::memory_order_relaxed);
      if (capture != 0) to->capture.store(capture, std::memory_order_relaxed);
    }
    if (busy && matters()) enter(OpKind::kStreamWait, stream, reinterpret_cast<std::uint64_t>(event), capture);
  }

  // waiting.cc: not on the path of a step.
  void begin_capture(CUstream_st* stream) noexcept;
  void end_capture(CUstream_st* stream, void** graph) noexcept;
  void instantiate(void** exec, void* graph) noexcept;
  void graph_launch(void* exec, CUstream_st* stream) noexcept;

  void finish(int result) noexcept {
    if (after_ != After::kNothing) finish_more(result);
    if (recorded_) scope()->finish(result);
  }

 private:
  /// Waits are recorded at all, and there is something to wait for.
  static bool matters() noexcept {
    return g_any_busy.load(std::memory_order_relaxed) && g_recorder.config.host_waits && recorder_is_on();
  }
  static bool follows() noexcept {
    return g_any_busy.load(std::memory_order_relaxed) || g_open_captures.load(std::memory_order_relaxed) != 0;
  }
  static bool any_stream_is_busy() noexcept;
  CallScope* scope() noexcept { return reinterpret_cast<CallScope*>(place_); }

  void enter(OpKind kind, const CUstream_st* stream, std::uint64_t event, std::uint64_t capture = 0) noexcept {
    if (t_thread.frame != nullptr) return;  // inside another recorded call: the library's own
    auto* call_scope = new (place_) CallScope(frame_, caller_);
    if (!call_scope->active()) return;
    recorded_ = true;
    Call call;
    call.kind = kind;
    call.detail = event;
    call.seq = trace::kNoPosition;
    call.count = 1;
    call.extensions = 1;
    call_scope->reserve(1);
    if (auto* issue = call_scope->extension<trace::IssueRecord>(0, trace::RecordKind::kIssue)) {
      issue->stream = stream_word(stream);
      issue->capture = capture;
      issue->device = t_device;
    }
    call_scope->enter(call);
  }
  void finish_more(int result) noexcept;

  enum class After : std::uint8_t {
    kNothing, kDevice, kAllIdle, kStreamIdle, kEventIdle, kBeginCapture, kEndCapture, kInstantiate
  };
  const void* frame_;
  const void* caller_;
  After after_ = After::kNothing;
  bool recorded_ = false;
  int device_ = 0;
  Stream* stream_ = nullptr;
  Event* event_ = nullptr;
  void** out_ = nullptr;
  void* graph_ = nullptr;
  alignas(CallScope) std::byte place_[sizeof(CallScope)];
};

}  // namespace lockstep::shim::cuda
