// A program of nccl_host, run under the recorder, with its traces.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "read_trace.h"
#include "run_host.h"

namespace lockstep::shim_test {

struct Recorded {
  TemporaryDirectory directory{};
  HostRun run{};
  std::vector<ReadTrace> traces{};  ///< by rank

  explicit Recorded(const std::string& scenario, int ranks, std::vector<std::pair<std::string, std::string>> env = {}) {
    std::vector<std::pair<std::string, std::string>> all = recorded_into(directory.path() + "/trace");
    all.insert(all.end(), env.begin(), env.end());
    run = run_host({NCCL_HOST, scenario, std::to_string(ranks), directory.path()}, {.env = all});
    for (const std::string& file : find_traces(directory.path() + "/trace")) {
      traces.push_back(read_trace(file));
      EXPECT_TRUE(traces.back().problems.empty()) << traces.back().problems.front();
    }
  }
  HostRun check() const { return run_host({LOCKSTEP_COMMAND, "check", directory.path() + "/trace"}); }
};

inline std::vector<OpKind> kinds(const ReadTrace& trace) {
  std::vector<OpKind> all;
  for (const ReadCall& call : trace.calls) all.push_back(call.kind());
  return all;
}
inline std::size_t count(const ReadTrace& trace, OpKind kind) {
  const std::vector<OpKind> all = kinds(trace);
  return static_cast<std::size_t>(std::ranges::count(all, kind));
}
inline std::vector<const ReadCall*> calls_of(const ReadTrace& trace, OpKind kind) {
  std::vector<const ReadCall*> found;
  for (const ReadCall& call : trace.calls) {
    if (call.kind() == kind) found.push_back(&call);
  }
  return found;
}

}  // namespace lockstep::shim_test
