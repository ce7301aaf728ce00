// See the header.
#include "match/vector_counts.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "match/signature.h"

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

/// Two numeric types. Of a type without a size, such as MPI_PACKED, nothing is known.
bool are_other_types(const Job& job, DatatypeIndex a, DatatypeIndex b) {
  return a != b && datatype_bytes(job.datatype(a)) != 0 && datatype_bytes(job.datatype(b)) != 0;
}

/// What decides whether a position fits: most calls of a long run say what an earlier one said.
std::uint64_t contents_of(const Position& at) {
  std::uint64_t hash = 0;
  const auto add = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0xd6e8feb86659fd93ULL;
    hash ^= hash >> 32;
  };
  for (const Operation* call : at.calls) {
    add(call == nullptr ? 1 : 2);
    if (call == nullptr) continue;
    add(static_cast<std::uint64_t>(call->extra) << 32 | static_cast<std::uint32_t>(call->peer));
    add(static_cast<std::uint64_t>(call->kind) << 32 | to_size(call->datatype));
    add(call->count.bits());
  }
  return hash;
}

void compare_pair(const Position& at, std::size_t sender, std::size_t receiver, std::optional<std::uint64_t> sent,
                  std::optional<std::uint64_t> expected, std::vector<VectorDifference>& out) {
  const DatatypeIndex sent_type = at.calls[sender]->datatype;
  const DatatypeIndex expected_type = at.calls[receiver]->datatype;
  const bool same_type = sent_type == expected_type || sent == 0U || expected == 0U;
  if (same_type && (!sent || !expected || *sent == *expected)) return;
  const bool of_mpi = at.job.library_of(at.calls[sender]->comm) == Library::kMpi;  // elsewhere told as a difference of its own
  if (!same_type && !(of_mpi && are_other_types(at.job, sent_type, expected_type))) return;
  const std::uint64_t known = sent ? *sent : expected.value_or(0);
  out.push_back({at.calls[sender]->seq, at.members[sender], at.members[receiver], sent.value_or(known), expected.value_or(known)});
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
      if (at.calls[sender] == nullptr) continue;
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
  constexpr std::size_t kMostRemembered = 4096;
  std::unordered_set<std::uint64_t> fitting;
  for (std::uint32_t i = 0; i < communicator.matched_positions(); ++i) {
    position.calls.assign(members.size(), nullptr);
    for (std::size_t m = 0; m < sequences.members.size(); ++m) {
      if (i >= sequences.operations[m].size() || member_of[m] == members.size()) continue;
      position.calls[member_of[m]] = &job.program(sequences.members[m]).operations[sequences.operations[m][i]];
    }
    const std::uint64_t contents = contents_of(position);
    if (fitting.contains(contents)) continue;
    communicator.vector_differences = compare_position(position);
    if (communicator.vector_differences.empty() && fitting.size() < kMostRemembered) fitting.insert(contents);
    if (communicator.vector_differences.empty()) continue;
    const std::uint32_t seq = sequences.first + i;
    if (!communicator.first_difference || *communicator.first_difference > seq) communicator.first_difference = seq;
    return;
  }
}

}  // namespace lockstep
