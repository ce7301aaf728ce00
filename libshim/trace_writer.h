// Puts records into the mapped file: blocks of the ring, one owner thread each, and the append-only side
// area.
#pragma once

#include <cstdint>

#include "recorder.h"

namespace lockstep::shim {

/// One 8-byte store that publishes what was written before it; the place holds two or more fields of a
/// record.
inline void publish_word(void* place, std::uint64_t word) noexcept {
  using Word [[gnu::may_alias]] = std::uint64_t;
  __atomic_store_n(static_cast<Word*>(place), word, __ATOMIC_RELEASE);
}

/// Opens a new block for this thread and gives its old one back. False if every block is owned: the record is
/// dropped. Cold.
bool open_block(ThreadState& thread) noexcept;

/// Room for `records` consecutive records in one block of this thread; null = dropped and counted.
inline std::byte* reserve_records(ThreadState& thread, std::uint32_t records) noexcept {
  const std::size_t bytes = std::size_t{records} * trace::kRecordBytes;
  if (__builtin_expect(static_cast<std::size_t>(thread.end - thread.next) < bytes, 0)) {
    if (!open_block(thread)) return nullptr;
  }
  std::byte* place = thread.next;
  thread.next += bytes;
  return place;
}

/// Forgets what all threads owned; for a new file.
void reset_blocks() noexcept;

/// Room for a side record of `bytes` (with its header), marked pending; null when the area is full. Any
/// thread.
void* reserve_side(trace::SideKind kind, std::uint32_t bytes) noexcept;
/// Publishes what `reserve_side` gave.
void commit_side(void* record) noexcept;

/// A kNote, kLibrary or kCommName record.
void write_text(trace::SideKind kind, std::uint32_t subject, const char* text) noexcept;
/// The kProcess record.
void write_process() noexcept;

}  // namespace lockstep::shim
