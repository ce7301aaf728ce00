// See the header.
#include "read/trace_ring.h"

#include <algorithm>

#include "read/trace_bytes.h"

namespace lockstep {
namespace {

bool is_open(const trace::BlockRecord& head) {
  return head.kind == static_cast<std::uint8_t>(trace::RecordKind::kBlock) && head.number != 0 &&
         head.commit == static_cast<std::uint32_t>(head.number);
}

}  // namespace

RingIndex index_ring(const TraceTables& tables) {
  const trace::FileHeader& header = tables.header;
  const TraceBytes bytes(tables.contents);
  RingIndex index;
  for (std::uint32_t slot = 0; slot < header.block_count; ++slot) {
    const std::uint64_t at = header.ring_offset + std::uint64_t{slot} * header.block_bytes;
    if (!bytes.has(at, header.block_bytes)) break;  // cut: only whole blocks are read
    const auto head = bytes.get<trace::BlockRecord>(at);
    if (!is_open(head)) continue;
    index.blocks.push_back({.number = head.number,
                            .offset = at + trace::kRecordBytes,
                            .end = at + header.block_bytes,
                            .thread_index = head.thread_index});
  }
  std::ranges::sort(index.blocks, {}, &RingBlock::number);
  const auto same = [](const RingBlock& left, const RingBlock& right) { return left.number == right.number; };
  index.blocks.erase(std::unique(index.blocks.begin(), index.blocks.end(), same), index.blocks.end());
  // Whose the absent blocks were is not known: history begins behind the last gap.
  std::size_t first = 0;
  for (std::size_t i = 1; i < index.blocks.size(); ++i) {
    if (index.blocks[i].number != index.blocks[i - 1].number + 1) first = i;
  }
  index.head_missing = index.blocks.empty() ? header.blocks_opened != 0 : index.blocks[first].number != 1;
  const auto gap = index.blocks.begin() + static_cast<std::ptrdiff_t>(first);
  index.stranded.assign(index.blocks.begin(), gap);
  index.blocks.erase(index.blocks.begin(), gap);
  for (const RingBlock& block : index.blocks) {
    index.several_threads = index.several_threads || block.thread_index != index.blocks.front().thread_index;
  }
  index.several_threads = index.several_threads || !index.stranded.empty();
  return index;
}

std::uint64_t last_ticks(const TraceTables& tables, const RingIndex& ring) {
  if (tables.header.end_ticks != 0) return tables.header.end_ticks;
  const TraceBytes bytes(tables.contents);
  std::uint64_t last = 0;
  for (const RingBlock& block : ring.blocks) {
    for (std::uint64_t at = block.offset; at + trace::kRecordBytes <= block.end; at += trace::kRecordBytes) {
      const auto record = bytes.get<trace::CallRecord>(at);
      if (record.commit != static_cast<std::uint32_t>(block.number)) break;
      if (record.kind < trace::kFirstExtensionKind) last = std::max({last, record.enter_ticks, record.return_ticks});
    }
  }
  return last;
}

TraceClock::TraceClock(const TraceTables& tables, const RingIndex& ring) {
  const TraceBytes bytes(tables.contents);
  const trace::FileHeader& header = tables.header;
  std::uint64_t last_ticks = header.created_ticks;
  std::uint64_t last_ns = header.created_unix_ns;
  for (const RingBlock& block : ring.blocks) {
    const auto head = bytes.get<trace::BlockRecord>(block.offset - trace::kRecordBytes);
    if (head.anchor_ticks <= last_ticks || head.anchor_unix_ns <= last_ns) continue;
    last_ticks = head.anchor_ticks;
    last_ns = head.anchor_unix_ns;
  }
  constexpr double kNanosecond = 1e-9;
  anchor_ticks_ = last_ticks;
  anchor_seconds_ = static_cast<double>(last_ns) * kNanosecond;
  // A rate taken over less than this is worse than the one that the kernel told the recorder.
  constexpr std::uint64_t kShortNs = 100'000'000;
  if (last_ticks > header.start_ticks && last_ns > header.start_unix_ns &&
      (last_ns - header.start_unix_ns >= kShortNs || header.ticks_per_second == 0)) {
    seconds_per_tick_ = static_cast<double>(last_ns - header.start_unix_ns) * kNanosecond /
                        static_cast<double>(last_ticks - header.start_ticks);
  } else if (header.ticks_per_second != 0) {
    seconds_per_tick_ = 1.0 / static_cast<double>(header.ticks_per_second);
  }
}

double TraceClock::unix_seconds(std::uint64_t ticks) const {
  if (anchor_ticks_ == 0 || seconds_per_tick_ <= 0) return 0;
  const double distance = ticks >= anchor_ticks_ ? static_cast<double>(ticks - anchor_ticks_)
                                                 : -static_cast<double>(anchor_ticks_ - ticks);
  return anchor_seconds_ + distance * seconds_per_tick_;
}

}  // namespace lockstep
