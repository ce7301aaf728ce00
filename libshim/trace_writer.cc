#include "trace_writer.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "text.h"

namespace lockstep::shim {
namespace {

using trace::kBlockBytes;
using trace::kRecordBytes;

// Owner thread of each slot of the ring; 0 = free. 16 GiB of ring at most.
constexpr std::uint32_t kMaxSlots = 1U << 19;
constinit std::atomic<std::uint32_t> g_owner[kMaxSlots] = {};

// A thread that ended kept its block: nobody told us. Asked only when the ring comes round to such a block.
bool thread_is_gone(std::uint32_t thread) noexcept {
  const ErrnoKeeper keep;
  return syscall(SYS_tgkill, getpid(), static_cast<int>(thread), 0) != 0 && errno == ESRCH;
}

bool take_slot(std::uint32_t slot, std::uint32_t thread) noexcept {
  std::uint32_t owner = g_owner[slot].load(std::memory_order_relaxed);
  if (owner == thread) return true;  // an earlier thread had our id
  if (owner != 0 && !thread_is_gone(owner)) return false;
  return g_owner[slot].compare_exchange_strong(owner, thread, std::memory_order_acq_rel);
}

void register_thread(ThreadState& thread) noexcept {
  thread = ThreadState{.frame = thread.frame,
                       .next = nullptr,
                       .end = nullptr,
                       .commit = 0,
                       .epoch = g_recorder.epoch,
                       .thread = 0,
                       .index = 0,
                       .slot = ~std::uint32_t{0},
                       .foreign_site = thread.foreign_site,
                       .scope_site = thread.scope_site,
                       .polls = 0,
                       .poll = {}};
  const ErrnoKeeper keep;
  thread.thread = static_cast<std::uint32_t>(syscall(SYS_gettid));
  thread.index = g_recorder.threads.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

bool open_block(ThreadState& thread) noexcept {
  TraceMap& map = g_recorder.map;
  if (thread.epoch != g_recorder.epoch) register_thread(thread);
  const std::uint32_t slots = map.block_count < kMaxSlots ? map.block_count : kMaxSlots;

  // A position is drawn first and becomes the block's number once a slot is ours, so numbers follow the order
  // of opening.
  static std::atomic<std::uint64_t> next_slot{0};
  std::uint32_t slot = 0;
  bool taken = false;
  for (std::uint32_t tries = 0; tries < slots && !taken; ++tries) {
    slot = static_cast<std::uint32_t>(next_slot.fetch_add(1, std::memory_order_relaxed) % slots);
    taken = slot != thread.slot && take_slot(slot, thread.thread);
  }
  if (!taken) {
    std::atomic_ref(map.header->records_dropped).fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const std::uint32_t old_slot = thread.slot;
  const std::uint64_t number =
      std::atomic_ref(map.header->blocks_opened).fetch_add(1, std::memory_order_relaxed) + 1;

  std::byte* block = map.ring + std::uint64_t{slot} * kBlockBytes;
  auto* head = reinterpret_cast<trace::BlockRecord*>(block);
  // From here the old content counts no more; its records carry the old number and so do not pass for new
  // ones.
  std::atomic_ref(head->commit).store(0, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_release);
  const Anchor anchor = make_anchor();
  head->anchor_ticks = anchor.at_ticks;
  head->anchor_unix_ns = anchor.at_unix_ns;
  head->number = number;
  head->thread = thread.thread;
  head->thread_index = thread.index;
  head->kind = static_cast<std::uint8_t>(trace::RecordKind::kBlock);
  std::atomic_ref(head->commit).store(static_cast<std::uint32_t>(number), std::memory_order_release);

  thread.slot = slot;
  thread.commit = static_cast<std::uint32_t>(number);
  thread.next = block + kRecordBytes;
  thread.end = block + kBlockBytes;
  thread.polls = 0;
  if (old_slot != ~std::uint32_t{0}) g_owner[old_slot].store(0, std::memory_order_release);
  return true;
}

void reset_blocks() noexcept {
  const std::uint32_t slots = g_recorder.map.block_count < kMaxSlots ? g_recorder.map.block_count : kMaxSlots;
  for (std::uint32_t slot = 0; slot < slots; ++slot) g_owner[slot].store(0, std::memory_order_relaxed);
  g_recorder.threads.store(0, std::memory_order_relaxed);
}

void* reserve_side(trace::SideKind kind, std::uint32_t bytes) noexcept {
  TraceMap& map = g_recorder.map;
  const std::uint64_t rounded = (std::uint64_t{bytes} + 63) / 64 * 64;
  std::atomic_ref used(map.header->side_used);
  std::uint64_t at = used.load(std::memory_order_relaxed);
  do {
    if (rounded > map.side_bytes - at) {
      mark_state(trace::kStateSideFull);
      return nullptr;
    }
  } while (!used.compare_exchange_weak(at, at + rounded, std::memory_order_relaxed));
  auto* header = new (map.side + at) trace::SideHeader;
  // Before anything of the body: a reader then knows how far to go on if this thread dies in it.
  const trace::SideHeader pending{trace::kSideMagic, kind, trace::kSidePending, bytes};
  publish_word(header, __builtin_bit_cast(std::uint64_t, pending));
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_release);
  return header;
}

void commit_side(void* record) noexcept {
  auto* header = static_cast<trace::SideHeader*>(record);
  trace::SideHeader done = *header;
  done.state = trace::kSideCommitted;
  publish_word(record, __builtin_bit_cast(std::uint64_t, done));
}

void write_text(trace::SideKind kind, std::uint32_t subject, const char* text) noexcept {
  std::size_t length = std::strlen(text);
  if (length > 1024) length = 1024;
  auto* record = static_cast<trace::TextRecord*>(
      reserve_side(kind, static_cast<std::uint32_t>(sizeof(trace::TextRecord) + length + 1)));
  if (record == nullptr) return;
  record->subject = subject;
  record->ticks = ticks();
  char* to = reinterpret_cast<char*>(record + 1);
  std::memcpy(to, text, length);
  to[length] = '\0';
  commit_side(record);
}

void write_process() noexcept {
  const Recorder& recorder = g_recorder;
  const TracePlace& place = recorder.place;
  const char* const texts[] = {place.host,     place.program,    place.run,
                               place.launcher, LOCKSTEP_VERSION, place.directory};
  std::size_t bytes = sizeof(trace::ProcessRecord);
  for (const char* text : texts) bytes += std::strlen(text) + 1;
  auto* record = static_cast<trace::ProcessRecord*>(
      reserve_side(trace::SideKind::kProcess, static_cast<std::uint32_t>(bytes)));
  if (record == nullptr) return;
  record->pid = getpid();
  record->parent_pid = getppid();
  record->attempt = recorder.config.attempt;
  record->env_rank = recorder.config.rank;
  record->env_ranks = recorder.config.ranks;
  record->local_rank = recorder.config.local_rank;
  record->start_unix_ns = recorder.loaded.at_unix_ns;
  char* to = reinterpret_cast<char*>(record + 1);
  for (const char* text : texts) {
    const std::size_t length = std::strlen(text) + 1;
    std::memcpy(to, text, length);
    to += length;
  }
  commit_side(record);
}

}  // namespace lockstep::shim
