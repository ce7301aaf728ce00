// See the header.
#include "match/nccl_groups.h"

#include <algorithm>
#include <bit>
#include <span>
#include <string_view>
#include <tuple>

#include "match/nccl_meetings.h"

namespace lockstep {
namespace {

/// Four bins for each power of two, as NCCL's sorter has them: calls in one bin keep their order.
std::uint64_t size_bin(std::uint64_t bytes) {
  if (bytes < 4) return bytes;
  const auto power = static_cast<std::uint64_t>(std::bit_width(bytes)) - 1;
  return power << 2 | (bytes >> (power - 2) & 3);
}

/// Since 2.29 the broadcasts of one group with several roots are one call, in which their order does not matter.
bool merges_roots(const Job& job) { return job.library_version() >= 22900; }

/// NCCL makes messages of these: they come behind its collectives, and only those between the same two ranks keep their order.
bool is_made_of_messages(OpKind kind) { return kind == OpKind::kAllToAll || kind == OpKind::kGather || kind == OpKind::kScatter; }

/// Gathers to different roots have no pair of ranks in common, nor have scatters from different roots; any other two have.
bool only_roots_share_pairs(std::span<const Operation* const> group) {
  OpKind kind{};
  bool first = true;
  for (const Operation* operation : group) {
    if (!is_made_of_messages(operation->kind)) continue;
    if (operation->kind == OpKind::kAllToAll || (!first && operation->kind != kind)) return false;
    kind = operation->kind;
    first = false;
  }
  return true;
}

using SortKey = std::tuple<std::uint64_t, OpKind, std::string_view, std::string_view, std::int32_t>;

SortKey sort_key(const Job& job, const Operation& operation, bool by_root) {
  if (is_made_of_messages(operation.kind)) return {~std::uint64_t{0}, OpKind::kAllToAll, {}, {}, by_root ? operation.peer : 0};
  const std::uint64_t size = std::max<std::size_t>(datatype_bytes(job.datatype(operation.datatype)), 1);
  const std::uint64_t bytes = operation.count.is_number() ? operation.count.number() * size : 0;
  const std::int32_t root = operation.kind == OpKind::kBroadcast && merges_roots(job) ? operation.peer : 0;
  return {~size_bin(bytes), operation.kind, job.redop(operation.redop), job.datatype(operation.datatype), root};
}

class Member {
 public:
  Member(const Job& job, const CallSequences& sequences, std::size_t member)
      : job_(job), operations_(job.program(sequences.members[member]).operations), calls_(sequences.operations[member]) {}

  std::size_t size() const { return calls_.size(); }
  bool joins_previous(std::size_t i) const {
    return i > 0 && i < calls_.size() && call(i).launch != 0 && call(i).launch == call(i - 1).launch;
  }
  std::uint64_t signature_at(std::size_t i) const { return signature(job_, call(i)); }

  /// Signatures in the order in which NCCL launches the calls.
  std::vector<std::uint64_t> launched() const {
    std::vector<const Operation*> order;
    for (std::size_t i = 0; i < calls_.size(); ++i) order.push_back(&call(i));
    for (std::size_t from = 0; from < order.size();) {
      std::size_t end = from + 1;
      while (joins_previous(end)) ++end;
      const std::span group = std::span(order).subspan(from, end - from);
      const bool by_root = only_roots_share_pairs(group);
      std::ranges::stable_sort(group, {}, [&](const Operation* call) { return sort_key(job_, *call, by_root); });
      from = end;
    }
    std::vector<std::uint64_t> signatures;
    for (const Operation* operation : order) signatures.push_back(signature(job_, *operation));
    return signatures;
  }

 private:
  const Operation& call(std::size_t i) const { return operations_[calls_[i]]; }
  const Job& job_;
  std::span<const Operation> operations_;
  const std::vector<std::uint32_t>& calls_;
};

CallSequences launches_of(const Job& job, CallSequences sequences) {
  for (std::size_t m = 0; m < sequences.members.size(); ++m) {
    const auto& operations = job.program(sequences.members[m]).operations;
    std::erase_if(sequences.operations[m], [&](std::uint32_t i) { return nccl_order(operations[i]) != NcclOrder::kLaunches; });
  }
  return sequences;
}

}  // namespace

void apply_group_rules(const Job& job, const CallSequences& all, CommunicatorMatch& communicator) {
  const CallSequences sequences = communicator.apart ? launches_of(job, all) : all;
  std::vector<Member> members;
  for (std::size_t m = 0; m < sequences.members.size(); ++m) members.emplace_back(job, sequences, m);
  if (members.size() < 2) return;
  const Member& first = members.front();
  bool same_length = true;
  for (const Member& member : members) {
    same_length = same_length && member.size() == first.size();
    for (std::size_t i = 0; i < std::min(member.size(), first.size()); ++i) {
      if (member.joins_previous(i) == first.joins_previous(i)) continue;
      const std::uint32_t seq = sequences.first + static_cast<std::uint32_t>(i);
      communicator.partition_difference = std::min(communicator.partition_difference.value_or(seq), seq);
      break;
    }
  }
  // Positions of launches alone are none that a report could name; the difference in the mixing is told as such.
  const bool other_groups = communicator.partition_difference.has_value();
  if (communicator.apart) communicator.partition_difference.reset();
  if (communicator.agreed || other_groups || !same_length) return;
  const std::vector<std::uint64_t> launched = first.launched();
  if (!std::ranges::all_of(members, [&](const Member& member) { return member.launched() == launched; })) return;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const bool differs = std::ranges::any_of(members, [&](const Member& member) { return member.signature_at(i) != first.signature_at(i); });
    if (differs) communicator.repaired.push_back(sequences.first + static_cast<std::uint32_t>(i));
  }
  if (communicator.apart) communicator.repaired.clear();
  std::erase_if(communicator.blocking, [&](std::uint32_t at) { return !communicator.apart || at < communicator.apart->launches; });
}

}  // namespace lockstep
