// One operation as a line of Job JSON; the counterpart of job_line.h.
#pragma once

#include <string>
#include <vector>

#include "model/job.h"

namespace lockstep {

/// Names for the communicators of a Job by CommIndex: their own, made different from each other.
std::vector<std::string> unique_group_names(const Job& job);

/// Appends the line of `operation`, without its launch (a batch is several of these), to `text`.
void append_operation(const Job& job, const std::vector<std::string>& group_names, const Operation& operation,
                      std::string& text);

}  // namespace lockstep
