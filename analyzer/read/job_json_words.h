// The fixed words of Job JSON outside its lines, read and written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"

namespace lockstep {

/// "exited N", "killed N", "running", "unknown"; N may be left out (0, and 9 for killed). Empty for anything else.
std::optional<ProgramEnd> parse_end(std::string_view text);
std::string job_json_end(const ProgramEnd& end);

/// A job rank as a key: digits only, up to 2^31-1.
std::optional<std::int32_t> rank_from_key(std::string_view key);

/// "2.28.9", or the number that NCCL codes it as (22809); nothing for anything else.
std::optional<int> parse_library_version(std::string_view text);
std::string job_json_library_version(int code);

/// "0-3,5" as ranks, in order, at most 2^20 of them; empty for anything else.
std::vector<std::int32_t> ranks_from_text(std::string_view text);

/// kUnknown for a name that is none of nccl, mpi and torch, or another spelling of one (rccl, pytorch).
Library library_from_name(std::string_view name);

}  // namespace lockstep
