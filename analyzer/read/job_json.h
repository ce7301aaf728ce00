// Reads Job JSON (DESIGN.md, section 7), the portable form of a Job; its lines are read by job_line.h.
#pragma once

#include <string_view>

#include "base/result.h"
#include "read/job_intake.h"

namespace lockstep {

/// An object with "ranks", "groups" or the schema's name among its outermost keys.
bool looks_like_job_json(std::string_view head);

/// Adds the programs and groups of `file`. Returns the number of programs added.
///
/// The keys may come in any order; the file is parsed as a stream, twice where the lines come before the groups. Beyond
/// the contract it knows what job_json_writer.h writes. Contradictions, unknown keys and lines that cannot be read are
/// warnings with their line. Where the JSON itself breaks, what stands before is used: the open rank is marked as cut, and
/// the ends of all are unknown unless "ends" came before. kMalformed: nothing usable; kUnsupported: a later schema version.
Result<std::size_t> read_job_json(const EvidenceFile& file, JobIntake& intake);

}  // namespace lockstep
