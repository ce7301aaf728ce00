// Where the trace of this process goes: run identity, directories, the network-file-system rule.
#pragma once

#include "config.h"

namespace lockstep::shim {

struct TracePlace {
  char file[kMaxPath] = {};       ///< the .lst file to make
  char pointer[kMaxPath] = {};    ///< the .ptr file to make; empty = not needed
  char directory[kMaxPath] = {};  ///< of the run
  char run[256] = {};
  char launcher[32] = {};  ///< who named the run: "pmix", "hydra", "single" ...
  char host[128] = {};
  char program[128] = {};  ///< file name of the executable
};

/// Fills `place` and makes the directories. Null, or what went wrong in a few words. System calls, no
/// allocation.
const char* find_trace_place(const Config& config, std::uint64_t start_unix_ns, TracePlace& place) noexcept;

/// Writes the pointer file of `place`, if it needs one. False if that did not work.
bool write_pointer(const Config& config, const TracePlace& place) noexcept;

}  // namespace lockstep::shim
