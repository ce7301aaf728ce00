// The simplest judge of a set of traces: first position per communicator where members differ, and who never
// returned. An oracle for tests of the recorder, not the analyzer.
#pragma once

#include <string>
#include <vector>

#include "read_trace.h"

namespace lockstep::shim_test {

/// "MPI_COMM_WORLD#1 all_reduce|barrier; comm3#0 barrier|-" in order of the first trace's communicators;
/// empty = all agree. "-" = no such call.
std::string first_differences(const std::vector<ReadTrace>& traces);

/// "0:ssend 1:recv": calls that had not returned, by rank.
std::string stuck_calls(const std::vector<ReadTrace>& traces);

std::vector<ReadTrace> read_traces(const std::string& directory);

}  // namespace lockstep::shim_test
