// Reads JSONL call lists: one JSON object per torch.distributed call, in program order (traces/deepspeed_1522/README.md).
#pragma once

#include <string_view>

#include "base/result.h"
#include "read/job_intake.h"

namespace lockstep {

/// A line among the first that is an object with the keys "rank" and "op".
bool looks_like_jsonl_calls(std::string_view head);

/// Adds the calls of `file`, of one rank or of several. Returns the number of programs added; kMalformed if no line is a call.
///
/// A communicator is the how-manieth creation with its list of members (new_group records), named by its label; a label
/// without such a record is known by label and members; WORLD is the world. Creations are collectives on WORLD. `completed`
/// says that the call returned: an operation issued with async=true is then enqueued, any other completed.
/// `seq` counts the calls of a rank: where it jumps, an OpKind::kOpaque operation stands for what is missing and the
/// program is marked (tail_missing); where it does not, an unreadable line in between has cost nothing. A program that is
/// whole and whose calls all returned has ended with status 0; the end of any other is unknown.
Result<std::size_t> read_jsonl_calls(const EvidenceFile& file, JobIntake& intake);

}  // namespace lockstep
