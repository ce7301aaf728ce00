// A trace file in memory: two communicators, a module, a note, and as many barriers as a test wants, one or
// two threads.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "lockstep/trace_record.h"

namespace lockstep {

struct SmallTrace {
  std::string host = "node3.cluster.example";
  std::string directory = "/home/alice/run/lockstep-trace";
  std::string module = "/home/alice/bin/train";
  std::string note = "left at /home/alice/notes on node3";
  std::uint32_t slots = 8;     ///< blocks that fit
  std::uint64_t blocks = 3;    ///< blocks opened; the last one is half full
  std::uint32_t records = 16;  ///< in a block, with its header
  std::uint32_t threads = 1;   ///< block n belongs to thread n % threads

  std::string bytes() const {
    using namespace trace;
    FileHeader header;
    header.magic = kMagic;
    header.version = kVersion;
    header.min_reader = kMinReader;
    header.header_bytes = kHeaderBytes;
    header.record_bytes = kRecordBytes;
    header.comm_table_offset = kHeaderBytes;
    header.comm_entry_bytes = sizeof(CommEntry);
    header.comm_entry_count = 4;
    header.side_offset = header.comm_table_offset + 4 * sizeof(CommEntry);
    header.side_bytes = 8192;
    header.ring_offset = header.side_offset + header.side_bytes;
    header.block_bytes = records * kRecordBytes;
    header.block_count = slots;
    header.file_bytes = header.ring_offset + std::uint64_t{slots} * header.block_bytes;
    header.blocks_opened = blocks;
    std::string file(header.file_bytes, '\0');
    const auto put = [&file](std::uint64_t at, const auto& value) {
      std::memcpy(file.data() + at, &value, sizeof value);
    };

    CommEntry entry;
    entry.comm = 7;
    entry.now[0] = {0x1234, 100};
    put(header.comm_table_offset + 2 * sizeof entry, entry);

    std::uint64_t side = header.side_offset;
    const auto add_side = [&](auto record, SideKind kind, std::uint8_t state,
                              const std::vector<std::string>& texts) {
      std::uint64_t length = sizeof record;
      for (const std::string& text : texts) length += text.size() + 1;
      record.header = {kSideMagic, kind, state, static_cast<std::uint32_t>(length)};
      put(side, record);
      std::uint64_t at = side + sizeof record;
      for (const std::string& text : texts) {
        file.replace(at, text.size(), text);
        at += text.size() + 1;
      }
      side += (length + 63) / 64 * 64;
    };
    add_side(ProcessRecord{}, SideKind::kProcess, kSideCommitted,
             {host, "train", "hydra-login1_4711.r2", "hydra", "0.1.0", directory});
    add_side(TextRecord{}, SideKind::kNote, kSidePending, {"never finished"});
    add_side(ModuleRecord{}, SideKind::kModule, kSideCommitted, {module});
    side += 64;  // reserved by somebody who died
    add_side(TextRecord{}, SideKind::kNote, kSideCommitted, {note});
    add_side(TextRecord{}, static_cast<SideKind>(99), kSideCommitted, {host});
    header.side_used = side - header.side_offset;

    for (std::uint64_t number = 1; number <= blocks; ++number) {
      std::uint64_t at = header.ring_offset + (number - 1) % slots * header.block_bytes;
      BlockRecord block;
      block.number = number;
      block.thread_index = static_cast<std::uint32_t>(number % threads);
      block.kind = static_cast<std::uint8_t>(RecordKind::kBlock);
      block.commit = static_cast<std::uint32_t>(number);
      put(at, block);
      const std::uint32_t used = number == blocks ? records / 2 : records;
      for (std::uint32_t i = 1; i < records; ++i) {
        CallRecord call;
        call.enter_ticks = number * 1000 + i;
        call.kind = static_cast<std::uint8_t>(OpKind::kBarrier);
        call.commit =
            static_cast<std::uint32_t>(i < used ? number : number - slots);  // the rest is of the turn before
        put(at + i * sizeof call, call);
      }
    }
    put(0, header);
    return file;
  }
};

}  // namespace lockstep
