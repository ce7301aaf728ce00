// Tables of streams, events and graphs, and what is done with them at the return of a call.
#include "cuda/waiting.h"

namespace lockstep::shim::cuda {

constinit Stream g_streams[kStreams] = {};
constinit Event g_events[kEvents] = {};
constinit std::atomic<bool> g_any_busy{false};
constinit std::atomic<std::uint32_t> g_open_captures{0};
constinit thread_local int t_device __attribute__((tls_model("initial-exec"))) = 0;

namespace {

// Graphs and what was made of them: which capture each holds. Few are made, never in a step.
struct Graph {
  void* handle = nullptr;
  std::uint32_t capture = 0;
};
constexpr std::uint32_t kGraphs = 4096;
constinit Graph g_graphs[kGraphs] = {};
constinit std::uint32_t g_graphs_used = 0;
constinit SpinLock g_graph_lock;
constinit std::atomic<std::uint32_t> g_next_capture{1};
// One bit a capture that holds communicator calls; those beyond are taken to.
constexpr std::uint32_t kCaptures = 1U << 16;
constinit std::atomic<std::uint64_t> g_communicates[kCaptures / 64] = {};

void keep_graph(void* handle, std::uint32_t capture) noexcept {
  const SpinGuard guard(g_graph_lock);
  for (std::uint32_t i = 0; i < g_graphs_used; ++i) {
    if (g_graphs[i].handle != handle) continue;
    g_graphs[i].capture = capture;
    return;
  }
  if (g_graphs_used < kGraphs) g_graphs[g_graphs_used++] = {handle, capture};
}

std::uint32_t capture_in(const void* handle) noexcept {
  const SpinGuard guard(g_graph_lock);
  for (std::uint32_t i = g_graphs_used; i > 0; --i) {
    if (g_graphs[i - 1].handle == handle) return g_graphs[i - 1].capture;
  }
  return 0;
}

constinit std::atomic<bool> g_device_noted{false};

// A rank of a job takes a GPU: it has a trace from here on, so that one that never communicates, or whose NCCL is linked statically, is
// not taken for one that was never started.
void note_device() noexcept {
  g_device_noted.store(true, std::memory_order_relaxed);
  if (g_recorder.phase == nullptr || g_recorder.config.rank < 0 || g_recorder.config.ranks < 2) return;
  if (g_recorder.phase->load(std::memory_order_acquire) == kPhaseNew) start_recorder();
  if (recorder_is_on()) write_text(trace::SideKind::kNote, trace::kNoteDevice, "cudaSetDevice");
}

bool communicates(std::uint32_t capture) noexcept {
  if (capture == 0) return false;
  if (capture >= kCaptures) return true;
  return (g_communicates[capture / 64].load(std::memory_order_relaxed) >> (capture % 64) & 1) != 0;
}

}  // namespace

void note_captured_call(std::uint32_t capture) noexcept {
  if (capture < kCaptures) {
    g_communicates[capture / 64].fetch_or(std::uint64_t{1} << (capture % 64), std::memory_order_relaxed);
  }
}

void reset_streams() noexcept {
  for (Stream& stream : g_streams) stream.busy.store(0, std::memory_order_relaxed);
  for (Event& event : g_events) event.handle.store(0, std::memory_order_relaxed);
  g_graph_lock.unlock();
}

bool Waiting::any_stream_is_busy() noexcept {
  for (const Stream& stream : g_streams) {
    if (stream.busy.load(std::memory_order_relaxed) != 0) return true;
  }
  return false;
}

void Waiting::begin_capture(CUstream_st* stream) noexcept {
  stream_ = find_stream(stream, true);
  if (stream_ != nullptr) after_ = After::kBeginCapture;
}

void Waiting::end_capture(CUstream_st* stream, void** graph) noexcept {
  stream_ = find_stream(stream, false);
  out_ = graph;
  if (stream_ != nullptr && stream_->capture.load(std::memory_order_relaxed) != 0) after_ = After::kEndCapture;
}

void Waiting::instantiate(void** exec, void* graph) noexcept {
  if (g_next_capture.load(std::memory_order_relaxed) == 1) return;
  out_ = exec;
  graph_ = graph;
  after_ = After::kInstantiate;
}

void Waiting::graph_launch(void* exec, CUstream_st* stream) noexcept {
  if (g_next_capture.load(std::memory_order_relaxed) == 1 || !recorder_is_on()) return;
  const std::uint32_t capture = capture_in(exec);
  if (!communicates(capture)) return;
  mark_busy(stream);
  enter(OpKind::kGraphLaunch, stream, 0, capture);
}

void Waiting::finish_more(int result) noexcept {
  if (after_ == After::kEndCapture) {
    // Also where it failed: the capture is over.
    const std::uint32_t capture = stream_->capture.load(std::memory_order_relaxed);
    for (Stream& stream : g_streams) {
      std::uint32_t mine = capture;
      stream.capture.compare_exchange_strong(mine, 0, std::memory_order_relaxed);
    }
    g_open_captures.fetch_sub(1, std::memory_order_relaxed);
    if (result == 0 && out_ != nullptr && *out_ != nullptr) keep_graph(*out_, capture);
    return;
  }
  if (result != 0) return;
  switch (after_) {
    case After::kDevice:
      t_device = device_;
      if (!g_device_noted.load(std::memory_order_relaxed)) note_device();
      break;
    case After::kAllIdle:
      for (Stream& stream : g_streams) stream.busy.store(0, std::memory_order_relaxed);
      break;
    case After::kStreamIdle:
      stream_->busy.store(0, std::memory_order_relaxed);
      break;
    case After::kEventIdle:
      event_->busy.store(0, std::memory_order_relaxed);
      break;
    case After::kBeginCapture:
      stream_->capture.store(g_next_capture.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
      g_open_captures.fetch_add(1, std::memory_order_relaxed);
      break;
    case After::kInstantiate:
      if (const std::uint32_t capture = capture_in(graph_); capture != 0 && out_ != nullptr) {
        keep_graph(*out_, capture);
      }
      break;
    case After::kNothing:
    case After::kEndCapture:
      break;
  }
}

}  // namespace lockstep::shim::cuda
