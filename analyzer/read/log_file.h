// A job log: merged or of one rank, in any of the wordings of log_grammars.h.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "read/formats.h"

namespace lockstep {

/// Text that is nothing else: the last format to be tried.
bool looks_like_log(std::string_view head);

/// One pass over the text. Memory: what is kept, which is bounded.
Result<std::unique_ptr<ParsedEvidence>> parse_log(const EvidenceFile& file);

/// The same piece by piece. Damage of compressed data ends the reading with a warning; what stands before it is used.
Result<std::unique_ptr<ParsedEvidence>> parse_log_stream(std::string_view path, ByteSource& source, const ReadProgress& progress);

/// Events go to JobIntake::reported(); calls that NCCL or a pipeline schedule printed become programs, where no other source has
/// calls of the job.
std::vector<std::optional<Error>> join_logs(std::vector<std::unique_ptr<ParsedEvidence>> parsed, JobIntake& intake);

}  // namespace lockstep
