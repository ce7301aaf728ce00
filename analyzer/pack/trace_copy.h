// A small, valid copy of a trace file, taken while its process may still be writing it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lockstep/trace_format.h"

namespace lockstep {

/// A trace file in pieces, to be changed and put together again.
struct TraceCopy {
  trace::FileHeader header{};               ///< as it was; assemble() adapts what describes the file
  std::vector<std::string> comm_entries{};  ///< those in use, `header.comm_entry_bytes` each
  std::vector<std::string> side_records{};  ///< those committed, without padding, in order
  std::vector<std::string> blocks{};        ///< by number; zeros behind the last committed record
  std::uint64_t calls = 0;                  ///< in `blocks`
};

/// Copies the trace in `contents` (`path` is for messages): header, side records, fingerprints, and blocks of
/// the ring from the newest backwards until they hold `tail` calls; besides, each thread's newest block. Only
/// committed records; blocks that were overwritten meanwhile are left out, which a reader sees by their
/// numbers. kMalformed, kUnsupported as for a reader of traces.
Result<TraceCopy> copy_trace(std::string_view contents, std::string_view path, std::uint64_t tail);

/// The bytes of a trace file that holds `copy` and nothing else.
std::string assemble(const TraceCopy& copy);

}  // namespace lockstep
