// What the tests of traces share: samples written in memory, and the Job that is read back from them.
#pragma once

#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "read/load.h"
#include "read/trace_set.h"
#include "support/trace_sample.h"
#include "unit/read/read_testing.h"

namespace lockstep {

using testing::SampleCall;
using testing::TraceSample;

inline constexpr SampleCall kSum{.kind = OpKind::kAllReduce, .count = 4, .datatype = 1, .redop = 1};

inline TraceSample sample(int rank, int ranks, std::uint32_t blocks = 4) {
  return TraceSample({.rank = rank, .ranks = ranks, .blocks = blocks});
}

/// The Job of these files, and the first error of one that could not be used.
struct ReadBack {
  Job job;
  std::string error;
  Report report;
};
inline ReadBack read_back(const std::vector<std::string>& files, std::size_t most_records_to_replay = kMostRecordsToReplay) {
  JobIntake intake;
  std::vector<std::string> padded;
  std::vector<EvidenceFile> views;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < files.size(); ++i) {
    padded.push_back(files[i] + std::string(MappedFile::kPaddingBytes, '\0'));
    names.push_back("rank" + std::to_string(i) + ".lst");
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    views.push_back({.path = names[i], .contents = {padded[i].data(), files[i].size()}});
  }
  ReadBack result;
  for (const auto& error : read_traces(views, intake, most_records_to_replay)) {
    if (error && result.error.empty()) result.error = error->message;
  }
  result.job = std::move(intake).finish();
  result.report = diagnose(result.job);
  return result;
}

}  // namespace lockstep
