// A Job in one expression, for tests that want to say what the ranks call and nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/job.h"

namespace lockstep::testing {

using GroupList = std::vector<std::pair<std::string, std::vector<std::int32_t>>>;

/// `lines[r]` = the calls of rank r in the line grammar of Job JSON; ranks end normally unless `ends` says
/// otherwise:
///   make_job({{"mp", {0, 1}}}, {{"all_reduce mp f32[1]"}, {}}, {{1, "killed 9"}}, "nccl")
/// Throws std::invalid_argument for lines that the reader warns about: a test must not go on with half a job.
Job make_job(const GroupList& groups, const std::vector<std::vector<std::string>>& lines,
             const std::map<std::int32_t, std::string>& ends = {}, std::string_view library = "");

/// The same for Job JSON as a whole.
Job job_from_json(std::string_view json);

}  // namespace lockstep::testing
