// Follows FORMAT.md, sections 1 to 3: what was committed first is read first, and what is referred to is
// copied after what refers to it.
#include "pack/trace_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>

#include "lockstep/trace_record.h"
#include "pack/record_as.h"
#include "read/trace_bytes.h"

namespace lockstep {
namespace {

using trace::FileHeader;

constexpr std::uint64_t round_up(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }

std::string copy_bytes(const TraceBytes& file, std::uint64_t at, std::uint64_t bytes) {
  std::string result(file.data(at), bytes);
  std::atomic_thread_fence(std::memory_order_acquire);  // what is loaded to confirm it is loaded after it
  return result;
}

/// A block of the ring that is open or full.
struct Slot {
  std::uint64_t number = 0;
  std::uint64_t offset = 0;
  std::uint32_t thread = 0;
};

std::vector<Slot> find_blocks(const TraceBytes& file, const FileHeader& header) {
  std::vector<Slot> slots;
  for (std::uint64_t i = 0; i < header.block_count; ++i) {
    const std::uint64_t at = header.ring_offset + i * header.block_bytes;
    if (!file.has(at, header.block_bytes)) break;  // cut
    const auto commit = file.acquire<std::uint32_t>(at + offsetof(trace::BlockRecord, commit));
    const auto record = as<trace::BlockRecord>(copy_bytes(file, at, sizeof(trace::BlockRecord)));
    if (record.kind != static_cast<std::uint8_t>(trace::RecordKind::kBlock) || record.number == 0 ||
        commit != static_cast<std::uint32_t>(record.number))
      continue;
    slots.push_back({record.number, at, record.thread_index});
  }
  std::ranges::sort(slots, {}, &Slot::number);
  return slots;
}

/// The block with its committed records and how many calls they are; empty if it was taken for a later block
/// meanwhile.
std::string copy_block(const TraceBytes& file, const Slot& slot, std::uint64_t block_bytes,
                       std::uint64_t& calls) {
  const auto commit = static_cast<std::uint32_t>(slot.number);
  std::string block(block_bytes, '\0');
  calls = 0;
  for (std::uint64_t at = 0; at + trace::kRecordBytes <= block_bytes; at += trace::kRecordBytes) {
    const std::uint64_t from = slot.offset + at;
    if (file.acquire<std::uint32_t>(from + offsetof(trace::CallRecord, commit)) != commit) break;
    // Stored last at return, so it is looked at before what was stored before it.
    const auto return_ticks = file.acquire<std::uint64_t>(from + offsetof(trace::CallRecord, return_ticks));
    std::string record = copy_bytes(file, from, trace::kRecordBytes);
    const auto kind = static_cast<std::uint8_t>(record[offsetof(trace::CallRecord, kind)]);
    if (kind < trace::kFirstExtensionKind) {
      std::memcpy(record.data() + offsetof(trace::CallRecord, return_ticks), &return_ticks,
                  sizeof return_ticks);
      ++calls;
    }
    block.replace(at, trace::kRecordBytes, record);
  }
  const auto now = as<trace::BlockRecord>(copy_bytes(file, slot.offset, sizeof(trace::BlockRecord)));
  return now.number == slot.number && now.commit == commit ? block : std::string();
}

void copy_ring(const TraceBytes& file, TraceCopy& copy, std::uint64_t tail) {
  const std::vector<Slot> slots = find_blocks(file, copy.header);
  std::set<std::uint32_t> threads;
  for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot) {
    const bool newest_of_thread = threads.insert(slot->thread).second;
    if (!newest_of_thread && copy.calls >= tail) continue;
    std::uint64_t calls = 0;
    std::string block = copy_block(file, *slot, copy.header.block_bytes, calls);
    if (block.empty()) continue;
    copy.calls += calls;
    copy.blocks.push_back(std::move(block));
  }
  std::ranges::reverse(copy.blocks);
}

void copy_comm_entries(const TraceBytes& file, TraceCopy& copy) {
  const FileHeader& header = copy.header;
  for (std::uint64_t i = 0; i < header.comm_entry_count; ++i) {
    const std::uint64_t at = header.comm_table_offset + i * header.comm_entry_bytes;
    if (!file.has(at, header.comm_entry_bytes)) break;
    const auto comm = file.acquire<std::uint32_t>(at + offsetof(trace::CommEntry, comm));
    if (comm == 0) continue;
    std::string entry = copy_bytes(file, at, header.comm_entry_bytes);
    if (file.acquire<std::uint32_t>(at + offsetof(trace::CommEntry, comm)) == comm)
      copy.comm_entries.push_back(std::move(entry));
  }
}

void copy_side(const TraceBytes& file, TraceCopy& copy) {
  const FileHeader& header = copy.header;
  const std::uint64_t used =
      std::min(file.acquire<std::uint64_t>(offsetof(FileHeader, side_used)), header.side_bytes);
  for (std::uint64_t at = 0; at < used;) {
    const std::uint64_t from = header.side_offset + at;
    if (!file.has(from, sizeof(trace::SideHeader))) break;
    const auto word = file.acquire<std::uint64_t>(from);
    if (word == 0) {
      at += 64;
      continue;
    }
    const auto head =
        as<trace::SideHeader>(std::string_view(reinterpret_cast<const char*>(&word), sizeof word));
    if (head.magic != trace::kSideMagic || head.bytes < sizeof head || head.bytes > header.side_bytes - at ||
        !file.has(from, head.bytes))
      break;
    if (head.state == trace::kSideCommitted) copy.side_records.push_back(copy_bytes(file, from, head.bytes));
    at += round_up(head.bytes);
  }
}

/// A kNote side record.
std::string note(std::string_view text) {
  trace::TextRecord record;
  record.header = {trace::kSideMagic, trace::SideKind::kNote, trace::kSideCommitted,
                   static_cast<std::uint32_t>(sizeof record + text.size() + 1)};
  std::string bytes(reinterpret_cast<const char*>(&record), sizeof record);
  bytes += text;
  bytes += '\0';
  return bytes;
}

std::string check_header(const FileHeader& header) {
  const auto inside = [&](std::uint64_t at, std::uint64_t bytes) {
    return at <= header.file_bytes && bytes <= header.file_bytes - at;
  };
  if (header.header_bytes < sizeof(FileHeader) || header.record_bytes != trace::kRecordBytes)
    return "sizes of header and records";
  if (header.block_bytes < 2 * trace::kRecordBytes || header.block_bytes % trace::kRecordBytes != 0)
    return "size of a block";
  if (header.comm_entry_bytes < sizeof(trace::CommEntry)) return "size of a communicator entry";
  if (!inside(header.side_offset, header.side_bytes)) return "place of the side area";
  if (!inside(header.ring_offset, std::uint64_t{header.block_bytes} * header.block_count))
    return "place of the ring";
  if (!inside(header.comm_table_offset, std::uint64_t{header.comm_entry_bytes} * header.comm_entry_count))
    return "place of the communicator table";
  return "";
}

}  // namespace

Result<TraceCopy> copy_trace(std::string_view contents, std::string_view path, std::uint64_t tail) {
  const auto error = [path](ErrorCode code, std::string_view why) {
    return Error{code, fmt::format("{}: {}", path, why)};
  };
  const TraceBytes file(contents);
  if (!file.has(0, sizeof(FileHeader))) return error(ErrorCode::kMalformed, "too short for a trace");
  if (file.acquire<std::uint64_t>(0) != trace::kMagic) {
    const bool empty =
        contents.substr(0, sizeof(FileHeader)).find_first_not_of('\0') == std::string_view::npos;
    return error(ErrorCode::kMalformed,
                 empty ? "an empty trace: its process died while making it" : "not a trace of Lockstep");
  }
  TraceCopy copy;
  // First of all, for it says how the process ended: what is read later can only be more than it promises.
  copy.header = as<FileHeader>(copy_bytes(file, 0, sizeof(FileHeader)));
  if (copy.header.min_reader > trace::kVersion)
    return error(ErrorCode::kUnsupported,
                 fmt::format("a trace of version {}, for readers from {} on; this one knows {}",
                             copy.header.version, copy.header.min_reader, trace::kVersion));
  if (const std::string why = check_header(copy.header); !why.empty())
    return error(ErrorCode::kMalformed, fmt::format("its header is damaged: {}", why));
  copy_ring(file, copy, tail);
  copy_comm_entries(file, copy);
  copy_side(file, copy);
  // The copy looks whole; its reader must know that it is not.
  if (contents.size() < copy.header.file_bytes) {
    copy.header.state |= trace::kStateStopped;
    copy.side_records.push_back(note("the trace was cut before it was packed"));
  }
  return copy;
}

std::string assemble(const TraceCopy& copy) {
  FileHeader header = copy.header;
  // Sizes of pieces that are there were seen to fit into a file; others are only claimed.
  if (copy.comm_entries.empty()) header.comm_entry_bytes = sizeof(trace::CommEntry);
  if (copy.blocks.empty()) header.block_bytes = trace::kBlockBytes;
  header.header_bytes = sizeof(FileHeader);
  header.comm_table_offset = sizeof(FileHeader);
  header.comm_entry_count = static_cast<std::uint32_t>(std::max<std::size_t>(copy.comm_entries.size(), 1));
  header.side_offset =
      round_up(header.comm_table_offset + std::uint64_t{header.comm_entry_count} * header.comm_entry_bytes);
  header.side_bytes = 0;
  for (const std::string& record : copy.side_records) header.side_bytes += round_up(record.size());
  header.side_used = header.side_bytes;
  header.ring_offset = header.side_offset + header.side_bytes;
  header.block_count = static_cast<std::uint32_t>(std::max<std::size_t>(copy.blocks.size(), 1));
  header.file_bytes = header.ring_offset + std::uint64_t{header.block_count} * header.block_bytes;

  std::string bytes(header.file_bytes, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  const auto put = [&bytes](std::uint64_t at, const std::string& piece) {
    bytes.replace(at, piece.size(), piece);
  };
  std::uint64_t at = header.comm_table_offset;
  for (const std::string& entry : copy.comm_entries) {
    put(at, entry);
    at += header.comm_entry_bytes;
  }
  at = header.side_offset;
  for (const std::string& record : copy.side_records) {
    put(at, record);
    at += round_up(record.size());
  }
  at = header.ring_offset;
  for (const std::string& block : copy.blocks) {
    put(at, block);
    at += header.block_bytes;
  }
  return bytes;
}

}  // namespace lockstep
