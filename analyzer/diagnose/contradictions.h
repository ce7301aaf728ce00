// Evidence of one job that cannot be of one run: what a log says of a rank against what the rank's own record holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "model/job.h"
#include "model/reported.h"

namespace lockstep {

struct Contradiction {
  std::string text{};                 ///< a plain sentence with both places
  std::vector<std::int32_t> ranks{};  ///< whose evidence is in doubt; empty: that of the whole log
  bool of_log = false;                ///< only findings that rest on lines of logs are touched
  std::vector<Evidence> evidence{};
};

/// Joins the groups of a log (PG id, GUID, description) with the communicators of the records (name, description,
/// members) and compares what both say of a rank. A record that is later than a line is normal, and so is a call that
/// has completed meanwhile: neither is a contradiction. Those that readers found come first. At most 32.
std::vector<Contradiction> find_contradictions(const Job& job, const ReportedEvidence& reported);

/// Whether the finding rests on what is in doubt.
bool is_touched(const Finding& finding, const Contradiction& contradiction, const ReportedEvidence& reported);

/// The communicator that a line of this rank means; kNoComm where none or several fit. `guid` and `description` as in
/// "67(default_pg)".
CommIndex communicator_of_line(const Job& job, std::string_view group, std::int32_t rank);

/// What the record of a rank holds of one communicator, in numbers from 1.
struct RecordedProgress {
  std::uint64_t made = 0;       ///< 0: it holds no call of it
  std::uint64_t completed = 0;  ///< all up to this one
  bool has_messages = false;    ///< numbers of lines count messages too
};
RecordedProgress recorded_progress(const Program& program, CommIndex comm);

}  // namespace lockstep
