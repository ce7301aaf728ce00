// See the header.
#include "match/nccl_meetings.h"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

using Calls = std::vector<const Operation*>;

/// Positions that the members cannot complete, as offsets from `first`.
void add_blocking(const Job& job, const std::vector<Calls>& members, std::uint32_t first, std::uint32_t positions,
                  std::vector<std::uint32_t>& blocking) {
  for (std::uint32_t i = 0; i < positions; ++i) {
    const Operation* reference = nullptr;
    bool blocks = false;
    for (const Calls& calls : members) {
      if (i >= calls.size()) continue;
      if (reference == nullptr) reference = calls[i];
      blocks = blocks || prevents_completion(compare_collective(job, *reference, *calls[i]));
    }
    if (blocks) blocking.push_back(first + i);
  }
}

}  // namespace

NcclOrder nccl_order(const Operation& operation) {
  if (op_class(operation.kind) != OpClass::kCollective) return NcclOrder::kMeetings;
  return is_empty_collective(operation) ? NcclOrder::kNone : NcclOrder::kLaunches;
}

void pair_apart(const Job& job, const CallSequences& sequences, CommunicatorMatch& communicator) {
  if (sequences.first != 0) return;  // what stood before is not known, so neither are the positions of each kind
  std::array<std::vector<Calls>, 2> by_order;
  std::vector<NcclOrder> longest;
  bool alike = true;
  std::size_t shortest = sequences.members.empty() ? 0 : sequences.operations.front().size();
  for (std::size_t m = 0; m < sequences.members.size(); ++m) {
    const auto& operations = job.program(sequences.members[m]).operations;
    for (auto& members : by_order) members.emplace_back();
    shortest = std::min(shortest, sequences.operations[m].size());
    for (std::size_t i = 0; i < sequences.operations[m].size(); ++i) {
      const Operation& operation = operations[sequences.operations[m][i]];
      const NcclOrder order = nccl_order(operation);
      if (i == longest.size()) longest.push_back(order);
      alike = alike && longest[i] == order;
      if (order != NcclOrder::kNone) by_order[static_cast<std::size_t>(order)].back().push_back(&operation);
    }
  }
  // What only some make at the end is compared with nothing, but it must not keep launches from being compared as a whole.
  for (std::size_t i = shortest; i < longest.size(); ++i) alike = alike && longest[i] == NcclOrder::kLaunches;
  if (alike) return;
  const auto most = [](const std::vector<Calls>& members) {
    return static_cast<std::uint32_t>(std::ranges::max(members, {}, &Calls::size).size());
  };
  communicator.apart = CommunicatorMatch::Apart{.launches = most(by_order[0]), .meetings = most(by_order[1])};
  communicator.blocking.clear();
  add_blocking(job, by_order[0], 0, communicator.apart->launches, communicator.blocking);
  add_blocking(job, by_order[1], communicator.apart->launches, communicator.apart->meetings, communicator.blocking);
}

}  // namespace lockstep
