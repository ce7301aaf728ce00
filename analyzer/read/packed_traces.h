// Packs as evidence: their members are handed to the reader of traces.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "read/job_intake.h"

namespace lockstep {

/// A pack is compressed: more than this is not unpacked, however small the file is.
inline constexpr std::uint64_t kMaxUnpackedBytes = std::uint64_t{4} << 30;

/// Unpacks `files` into memory and reads all traces in them as read_traces() does. By file: what went wrong,
/// if nothing of it could be used. What was damaged in part is a warning of the Job.
std::vector<std::optional<Error>> read_packs(std::span<const EvidenceFile> files, JobIntake& intake);

}  // namespace lockstep
