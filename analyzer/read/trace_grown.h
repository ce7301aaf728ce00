// Communicators that ncclCommGrow and ncclCommShrink make: members know them by different things, and not all ranks of the parent
// take part. Here they are put together again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "read/trace_ring.h"
#include "read/trace_tables.h"

namespace lockstep {

/// Identity as the new members have it (hash of the unique id), and as the old ones have it (child of their parent). The old member
/// that held the id recorded both in its call. Empty at once for a file that made no communicator in this way.
std::vector<std::pair<std::uint64_t, std::uint64_t>> grown_identities(const TraceTables& tables, const RingIndex& ring);

/// The members of the parent, by index in it, that a shrink leaves: those whose complement has the hash that was recorded. Nothing
/// where there are too many ways to leave out that many ranks to try them.
std::optional<std::vector<std::size_t>> shrink_survivors(std::size_t parent_ranks, std::size_t survivors, std::uint64_t excluded_hash);

}  // namespace lockstep
