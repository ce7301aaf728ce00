// See the header.
#include "match/sequences.h"

#include <algorithm>

namespace lockstep {

std::vector<CallSequences> collect_sequences(const Job& job, const MatchResult& match,
                                             std::span<const CommIndex> communicators) {
  constexpr std::uint32_t kNotAsked = 0xffffffff;
  std::vector<std::uint32_t> slot_of_comm(job.communicators().size(), kNotAsked);
  std::vector<CallSequences> result(communicators.size());
  // next[c] = the member whose turn it is: programs are walked in the order in which members are listed.
  std::vector<std::size_t> next(communicators.size(), 0);
  for (std::size_t slot = 0; slot < communicators.size(); ++slot) {
    const CommunicatorMatch& communicator = match.communicators[to_size(communicators[slot])];
    slot_of_comm[to_size(communicators[slot])] = static_cast<std::uint32_t>(slot);
    result[slot].comm = communicators[slot];
    result[slot].first = communicator.first_position;
    for (const MemberCalls& member : communicator.members) {
      result[slot].members.push_back(member.program);
      result[slot].operations.emplace_back().reserve(
          member.count > communicator.first_position ? member.count - communicator.first_position : 0);
    }
  }
  const auto programs = job.programs();
  for (std::uint32_t p = 0; p < programs.size(); ++p) {
    const auto is_turn = [&](std::size_t slot) {
      return next[slot] < result[slot].members.size() && result[slot].members[next[slot]] == ProgramIndex{p};
    };
    bool any = false;
    for (std::size_t slot = 0; slot < result.size(); ++slot) any = any || is_turn(slot);
    if (!any) continue;
    const auto operations = programs[p].placed_operations();
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      if (!is_placed_collective(operations[i])) continue;
      const std::uint32_t slot = slot_of_comm[to_size(operations[i].comm)];
      if (slot == kNotAsked || operations[i].seq < result[slot].first) continue;
      if (is_turn(slot)) result[slot].operations[next[slot]].push_back(i);
    }
    for (std::size_t slot = 0; slot < result.size(); ++slot) {
      if (is_turn(slot)) ++next[slot];
    }
  }
  return result;
}

void find_first_differences(const Job& job, const CallSequences& sequences, CommunicatorMatch& communicator) {
  const auto operation = [&](std::size_t member, std::uint32_t seq) -> const Operation& {
    return job.program(sequences.members[member]).operations[sequences.operations[member][seq - sequences.first]];
  };
  for (std::uint32_t seq = sequences.first; seq < communicator.positions; ++seq) {
    const Operation* reference = nullptr;
    bool blocks = false;
    for (std::size_t member = 0; member < sequences.members.size(); ++member) {
      if (seq - sequences.first >= sequences.operations[member].size()) continue;
      const Operation& own = operation(member, seq);
      if (reference == nullptr) {
        reference = &own;
        continue;
      }
      const Difference difference = compare_collective(job, *reference, own);
      if (difference == Difference::kNone) continue;
      if (!communicator.first_difference) communicator.first_difference = seq;
      blocks = blocks || prevents_completion(difference);
    }
    if (blocks) communicator.blocking.push_back(seq);
  }
}

}  // namespace lockstep
