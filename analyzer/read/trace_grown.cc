// See the header.
#include "read/trace_grown.h"

#include <algorithm>
#include <map>

#include "lockstep/op_kind.h"
#include "read/trace_bytes.h"
#include "read/trace_calls.h"

namespace lockstep {
namespace {

/// Lists of excluded ranks that are tried, at most.
constexpr std::size_t kMostLists = std::size_t{1} << 20;

class ExclusionSearch {
 public:
  ExclusionSearch(std::size_t ranks, std::size_t excluded, std::uint64_t wanted)
      : ranks_(ranks), excluded_(excluded), wanted_(wanted), is_excluded_(ranks, false) {}

  std::optional<std::vector<std::size_t>> run() {
    if (!extend(0, 0)) return std::nullopt;
    std::vector<std::size_t> survivors;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if (!is_excluded_[rank]) survivors.push_back(rank);
    }
    return survivors;
  }

 private:
  /// Lists are hashed in the order in which they were passed, which need not be ascending.
  bool extend(std::size_t length, std::uint64_t hash) {
    if (length == excluded_) return hash == wanted_;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if (is_excluded_[rank]) continue;
      if (++tried_ > kMostLists) return false;
      is_excluded_[rank] = true;
      if (extend(length + 1, trace::mix(hash ^ static_cast<std::uint64_t>(rank), length + 1))) return true;
      is_excluded_[rank] = false;
    }
    return false;
  }

  const std::size_t ranks_;
  const std::size_t excluded_;
  const std::uint64_t wanted_;
  std::vector<bool> is_excluded_;
  std::size_t tried_ = 0;
};

}  // namespace

std::vector<std::pair<std::uint64_t, std::uint64_t>> grown_identities(const TraceTables& tables, const RingIndex& ring) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> links;
  const bool grows = std::ranges::any_of(tables.comms, [](const TraceComm& comm) {
    return comm.known() && static_cast<OpKind>(comm.record.kind) == OpKind::kGrow && comm.record.parent != 0;
  });
  if (!grows || ring.head_missing) return links;  // the how-manieth is not known where the first are lost
  const TraceBytes bytes(tables.contents);
  std::map<std::uint32_t, std::uint32_t> made;  // by parent
  for (const RingBlock& block : ring.blocks) {
    const auto visit = [&](const trace::CallRecord& call, const CallExtensions& extensions, bool) {
      if (static_cast<OpKind>(call.kind) != OpKind::kGrow || call.comm == 0 || call.comm >= tables.comms.size()) return;
      const std::uint32_t number = made[call.comm]++;
      const std::uint64_t parent = tables.comms[call.comm].record.identity;
      if (!extensions.has_creation || extensions.creation.group_hash == 0 || parent == 0) return;
      const std::uint64_t making = static_cast<std::uint64_t>(OpKind::kGrow) << 32 | number;
      const auto size = static_cast<std::uint32_t>(extensions.creation.members);
      links.emplace_back(extensions.creation.group_hash, trace::mix(trace::mix(parent, making), size));
    };
    if (!visit_block(bytes, block, visit)) return {};
  }
  return links;
}

std::optional<std::vector<std::size_t>> shrink_survivors(std::size_t parent_ranks, std::size_t survivors, std::uint64_t excluded_hash) {
  if (survivors == 0 || survivors >= parent_ranks || excluded_hash == 0) return std::nullopt;
  const std::size_t excluded = parent_ranks - survivors;
  constexpr std::size_t kDeepest = 64;  // a search that deep ends by the number of lists anyway
  if (excluded > kDeepest) return std::nullopt;
  return ExclusionSearch(parent_ranks, excluded, excluded_hash).run();
}

}  // namespace lockstep
