// What NCCL's RAS answers to "set format json" (2.28 and later): communicators with the launches of each rank.
#pragma once

#include <memory>

#include "read/formats.h"

namespace lockstep {

bool looks_like_ras_json(std::string_view head);

/// Joined with the logs of the job. Commas that NCCL 2.28.9 leaves out are put in. Ranks are job ranks where one communicator
/// holds all processes; else differences name processes only.
Result<std::unique_ptr<ParsedEvidence>> parse_ras_json(const EvidenceFile& file);

}  // namespace lockstep
