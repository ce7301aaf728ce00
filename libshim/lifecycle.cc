// Life of the recorder in the host: loaded, started at the first recorded call, ended with the process, begun
// anew in a fork.
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "call_site.h"
#include "comm_registry.h"
#include "log.h"
#include "name_registry.h"
#include "original.h"
#include "recorder.h"
#include "text.h"
#include "trace_writer.h"
#include "vector_registry.h"

// What pthread_atfork calls; that one is in libpthread on older systems.
extern "C" int __register_atfork(void (*)(), void (*)(), void (*)(), void*) noexcept;
extern "C" void* __dso_handle;

namespace lockstep::shim {

constinit Recorder g_recorder;
constinit thread_local ThreadState t_thread __attribute__((tls_model("initial-exec"))) = {};

ErrnoKeeper::ErrnoKeeper() noexcept : value_(errno) {}
ErrnoKeeper::~ErrnoKeeper() { errno = value_; }

namespace {

void end_of_process(int status, void*) {
  if (!recorder_is_on()) return;
  trace::FileHeader* header = g_recorder.map.header;
  header->exit_status = status;
  header->end_ticks = ticks();
  std::atomic_thread_fence(std::memory_order_release);
  header->end = trace::ProcessEnd::kExited;
}

void after_fork_in_child() { g_recorder.phase->store(kPhaseNew, std::memory_order_relaxed); }

// A page that every kind of fork hands to the child as zeros: the child then finds kPhaseNew, without a
// handler of ours in its way. Where there is no such page (before Linux 4.14, some sandboxes) a handler does
// the same for fork(3).
std::atomic<std::uint32_t>* make_phase() noexcept {
  const auto page = static_cast<std::size_t>(getpagesize());
  void* place = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return nullptr;
  if (madvise(place, page, MADV_WIPEONFORK) != 0)
    __register_atfork(nullptr, nullptr, after_fork_in_child, __dso_handle);
  return static_cast<std::atomic<std::uint32_t>*>(place);
}

__attribute__((constructor)) void on_load() noexcept {
  const ErrnoKeeper keep;
  if (getauxval(AT_SECURE) != 0) return;
  read_config(g_recorder.config);
  if (!g_recorder.config.enabled) return;
  g_recorder.loaded = make_anchor();
  g_recorder.phase = make_phase();
  // Handlers run last in, first out, so this one comes after those of the host, which may still communicate.
  if (g_recorder.phase != nullptr) on_exit(end_of_process, nullptr);
}

void begin_anew() noexcept {
  munmap(g_recorder.map.base, g_recorder.map.bytes);
  g_recorder.map = TraceMap{};
  g_recorder.loaded = make_anchor();
  reset_comms();
  reset_names();
  reset_sites();
  reset_vectors();
}

}  // namespace

bool start_recorder() noexcept {
  const ErrnoKeeper keep;
  Recorder& recorder = g_recorder;
  std::uint32_t expected = kPhaseNew;
  if (!recorder.phase->compare_exchange_strong(expected, kPhaseStarting)) return expected == kPhaseOn;
  const bool forked = recorder.map.base != nullptr;
  if (forked) begin_anew();
  const char* problem = find_trace_place(recorder.config, recorder.loaded.at_unix_ns, recorder.place);
  if (problem == nullptr) {
    problem = create_trace_file(recorder.config, recorder.place, recorder.loaded,
                                forked ? trace::kStateForkedFrom : 0U, recorder.map);
  }
  if (problem != nullptr) {
    recorder.phase->store(kPhaseOff, std::memory_order_release);
    say_recording_is_off(problem,
                         recorder.place.file[0] != '\0' ? recorder.place.file : recorder.config.directory);
    return false;
  }
  reset_blocks();
  write_process();
  if (!write_pointer(recorder.config, recorder.place)) {
    write_text(trace::SideKind::kNote, 0, "the pointer file could not be written");
  }
  if (recorder.problem[0] != '\0') write_text(trace::SideKind::kNote, 0, recorder.problem);
  // A forked child belongs to the run of its parent.
  Text(recorder.config.run).add(recorder.place.run);
  recorder.epoch += 1;
  if (forked && recorder.on_new_file != nullptr) recorder.on_new_file();
  recorder.phase->store(kPhaseOn, std::memory_order_release);
  return true;
}

}  // namespace lockstep::shim
