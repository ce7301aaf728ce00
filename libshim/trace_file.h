// Makes the trace file and maps it: sizes, limits, reserved blocks, first touch. Afterwards nothing here runs
// any more.
#pragma once

#include <cstdint>

#include "clock.h"
#include "config.h"
#include "lockstep/trace_record.h"
#include "run_directory.h"

namespace lockstep::shim {

/// The mapped file. All null until it is there.
struct TraceMap {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  trace::FileHeader* header = nullptr;
  trace::CommEntry* comm_entries = nullptr;
  std::uint32_t comm_entry_count = 0;
  std::byte* side = nullptr;
  std::uint64_t side_bytes = 0;
  std::byte* ring = nullptr;
  std::uint32_t block_count = 0;
};

/// Makes `place.file` of at most `config.ring_bytes` of ring (less where the limits say so), fills the header
/// and maps it. Null, or why there is no trace; then nothing is left behind. `started` is when the recorder
/// was loaded.
const char* create_trace_file(const Config& config, const TracePlace& place, const Anchor& started,
                              std::uint32_t initial_state, TraceMap& map) noexcept;

}  // namespace lockstep::shim
