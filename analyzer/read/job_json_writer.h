// Writes a Job as Job JSON (DESIGN.md, section 7); the counterpart of job_json.h.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "model/job.h"

namespace lockstep {

/// The text of `job`, a line of the file per line of a rank, in pieces of some 64 KiB to `write`.
///
/// read_job_json() gives back an equal Job: the same programs, communicators, ends, places and marks of missing parts. Not
/// kept are source files and lines, warnings, all but the text of a `compute`, and the values of launch numbers (which operations share one is). Beyond the
/// contract the text may have "group_ids" (where the identity is not the name), "missing", "places", "name",
/// "ranks_expected" and "complete"; communicators with one name get "~2", "~3" ... after it; text that is not UTF-8 has
/// replacement characters. Order is that of the Job, so equal Jobs give equal text.
void write_job_json(const Job& job, const std::function<void(std::string_view)>& write);

/// The same as one string, for small Jobs.
std::string to_job_json(const Job& job);

}  // namespace lockstep
