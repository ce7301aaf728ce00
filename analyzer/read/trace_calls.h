// Walks the call records of a ring in program order.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "read/trace_bytes.h"
#include "read/trace_ring.h"

namespace lockstep {

/// The extension records of one call.
struct CallExtensions {
  trace::SecondHalfRecord half{};
  bool has_half = false;
  std::vector<std::uint32_t> requests{};
  std::array<trace::CountsRecord, 2> counts{};  ///< by side
  std::array<bool, 2> has_counts{};
  trace::CreationRecord creation{};
  bool has_creation = false;
  trace::IssueRecord issue{};
  bool has_issue = false;
  std::string name{};

  void clear() { *this = {}; }
};

/// Calls `visit(const CallRecord&, const CallExtensions&, bool left)` for every whole call of a block, oldest first. `left`: a later
/// call of the thread follows, so the call is over although its record may be open. False when the block was re-opened
/// while it was read: what was visited is worth nothing.
template <class Visit>
bool visit_block(const TraceBytes& bytes, const RingBlock& block, Visit&& visit);

/// Fills `extensions` from the records behind a call at `at`; false where one is missing: the call is torn.
bool read_extensions(const TraceBytes& bytes, const RingBlock& block, std::uint64_t at, std::uint8_t count,
                     CallExtensions& extensions);

template <class Visit>
bool visit_block(const TraceBytes& bytes, const RingBlock& block, Visit&& visit) {
  const auto commit = static_cast<std::uint32_t>(block.number);
  CallExtensions extensions;
  static const CallExtensions kNone;
  constexpr std::uint64_t kCommitAt = offsetof(trace::CallRecord, commit);
  constexpr std::uint64_t kReturnAt = offsetof(trace::CallRecord, return_ticks);
  constexpr std::uint64_t kAhead = 24 * trace::kRecordBytes;  // what a record costs, times this, is the way to memory
  for (std::uint64_t at = block.offset; at < block.end; at += trace::kRecordBytes) {
    bytes.prefetch(at + kAhead);
    if (bytes.acquire<std::uint32_t>(at + kCommitAt) != commit) break;
    const auto returned = bytes.acquire<std::uint64_t>(at + kReturnAt);
    auto record = bytes.get<trace::CallRecord>(at);
    record.return_ticks = returned;
    if (record.kind >= trace::kFirstExtensionKind) continue;  // of a call that is not there: damaged
    const std::uint64_t next = at + (std::uint64_t{record.extensions} + 1) * trace::kRecordBytes;
    const CallExtensions* own = &kNone;
    if (record.extensions != 0) {
      extensions.clear();
      if (!read_extensions(bytes, block, at, record.extensions, extensions)) break;
      own = &extensions;
    }
    const bool left = next < block.end && bytes.get<std::uint32_t>(next + kCommitAt) == commit;
    visit(record, *own, left);
    at = next - trace::kRecordBytes;
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  const auto head = bytes.get<trace::BlockRecord>(block.offset - trace::kRecordBytes);
  return head.number == block.number && head.commit == commit;
}

}  // namespace lockstep
