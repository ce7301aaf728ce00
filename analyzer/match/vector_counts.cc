// See the header.
#include "match/vector_counts.h"

#include <algorithm>
#include <optional>

namespace lockstep {
namespace {

/// The calls of all members at one position; null for those that make none, or left no record.
struct Position {
  const Job& job;
  const std::vector<std::int32_t>& members;  ///< job ranks
  std::vector<const Operation*> calls{};     ///< by member

  std::optional<std::uint64_t> listed(std::size_t member, std::size_t other, bool received) const {
    const OperationExtra& extra = job.extra(*calls[member]);
    const auto& counts = received ? extra.recv_counts : extra.counts;
    return counts.size() == members.size() ? std::optional(counts[other]) : std::nullopt;
  }
  std::optional<std::uint64_t> own(std::size_t member) const {
    const Count count = calls[member]->count;
    return count.is_number() ? std::optional(count.number()) : std::nullopt;
  }
};

void compare_pair(const Position& at, std::size_t sender, std::size_t receiver, std::optional<std::uint64_t> sent,
                  std::optional<std::uint64_t> expected, std::vector<VectorDifference>& out) {
  if (!sent || !expected || *sent == *expected) return;
  if (at.calls[sender]->datatype != at.calls[receiver]->datatype) return;  // told as a difference of its own
  out.push_back({at.calls[sender]->seq, at.members[sender], at.members[receiver], *sent, *expected});
}

std::vector<VectorDifference> compare_position(const Position& at) {
  std::vector<VectorDifference> differences;
  const auto first = std::ranges::find_if(at.calls, [](const Operation* call) { return call != nullptr; });
  if (first == at.calls.end()) return differences;
  const OpKind kind = (*first)->kind;
  if (!has_pairwise_counts(kind)) return differences;
  for (const Operation* call : at.calls) {
    if (call != nullptr && (call->kind != kind || call->peer != (*first)->peer)) return differences;
  }
  if (kind == OpKind::kAllToAllV) {
    for (std::size_t sender = 0; sender < at.calls.size(); ++sender) {
      if (at.calls[sender] == nullptr || at.job.extra(*at.calls[sender]).counts.size() != at.members.size()) continue;
      for (std::size_t receiver = 0; receiver < at.calls.size(); ++receiver) {
        if (at.calls[receiver] == nullptr) continue;
        compare_pair(at, sender, receiver, at.listed(sender, receiver, false), at.listed(receiver, sender, true), differences);
      }
    }
    return differences;
  }
  const auto root_at = std::ranges::find(at.members, (*first)->peer);
  if (root_at == at.members.end()) return differences;
  const auto root = static_cast<std::size_t>(root_at - at.members.begin());
  if (at.calls[root] == nullptr) return differences;
  for (std::size_t member = 0; member < at.calls.size(); ++member) {
    // What the root gives for itself may be MPI_IN_PLACE.
    if (at.calls[member] == nullptr || member == root) continue;
    if (kind == OpKind::kGatherV) {
      compare_pair(at, member, root, at.own(member), at.listed(root, member, false), differences);
    } else {
      compare_pair(at, root, member, at.listed(root, member, false), at.own(member), differences);
    }
  }
  return differences;
}

}  // namespace

void compare_vectors(const Job& job, const CallSequences& sequences, CommunicatorMatch& communicator) {
  const std::vector<std::int32_t>& members = job.communicator(sequences.comm).members;
  std::vector<std::size_t> member_of(sequences.members.size(), members.size());
  for (std::size_t m = 0; m < sequences.members.size(); ++m) {
    const auto at = std::ranges::find(members, job.program(sequences.members[m]).rank);
    member_of[m] = static_cast<std::size_t>(at - members.begin());
  }
  Position position{.job = job, .members = members};
  for (std::uint32_t i = 0; i < communicator.matched_positions(); ++i) {
    position.calls.assign(members.size(), nullptr);
    for (std::size_t m = 0; m < sequences.members.size(); ++m) {
      if (i >= sequences.operations[m].size() || member_of[m] == members.size()) continue;
      position.calls[member_of[m]] = &job.program(sequences.members[m]).operations[sequences.operations[m][i]];
    }
    communicator.vector_differences = compare_position(position);
    if (communicator.vector_differences.empty()) continue;
    const std::uint32_t seq = sequences.first + i;
    if (!communicator.first_difference || *communicator.first_difference > seq) communicator.first_difference = seq;
    return;
  }
}

}  // namespace lockstep
