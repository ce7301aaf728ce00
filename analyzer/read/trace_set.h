// The traces of one run, read together: which file is whose, communicators joined by identity, ends and liveness.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "read/job_intake.h"

namespace lockstep {

/// Adds the programs of all `files` to the intake. Of files of several runs those of the newest are used; of several files of
/// one rank the youngest. By file: what went wrong, if it could not be used at all.
std::vector<std::optional<Error>> read_traces(std::span<const EvidenceFile> files, JobIntake& intake);

/// Rings of more records than this are not read where fingerprints of all calls prove agreement. Up to it a job is read and
/// replayed whole, whatever they say: that also tells what it relies on.
inline constexpr std::size_t kMostRecordsToReplay = 8'000'000;
std::vector<std::optional<Error>> read_traces(std::span<const EvidenceFile> files, JobIntake& intake,
                                              std::size_t most_records_to_replay);

}  // namespace lockstep
