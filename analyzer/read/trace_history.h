// What a job's traces say about calls that their rings no longer hold.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "read/job_intake.h"
#include "read/trace_agreement.h"
#include "read/trace_program.h"
#include "read/trace_ring.h"
#include "read/trace_tables.h"

namespace lockstep {

/// One file and what was read from it; its communicators by id, as they stand in the Job.
struct HistoryInput {
  const TraceTables* tables = nullptr;
  const RingIndex* ring = nullptr;
  const TraceNames* names = nullptr;
  TraceProgram* read = nullptr;
};

/// Compares the fingerprints of every communicator of which some ring has lost the beginning. Agreement is a note of the Job, a
/// difference a LostDifference of the communicator; what cannot be compared makes the Job incomplete.
void check_lost_calls(std::span<const HistoryInput> inputs, JobBuilder& builder);

/// Leaves out the messages between two ranks that cannot be paired since a ring has lost messages between them: those before
/// the first that both records hold, and all where several tags make the order uncertain. One that is still under way
/// becomes opaque.
void trim_messages(std::span<const HistoryInput> inputs, JobIntake& intake);

/// Whether all members made the same number of calls on each communicator and agree on them, every process has finalized, and
/// no ring holds anything but collectives: then there is nothing that a replay could add. Looks at one byte of each record.
bool agrees_by_fingerprints(std::span<const HistoryInput> inputs);

}  // namespace lockstep
