// See the header.
#include "diagnose/missing_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/rank_ranges.h"
#include "diagnose/rule_findings.h"

namespace lockstep {
namespace {

struct Launch {
  std::int32_t rank = 0;
  std::uint32_t number = 0;
  friend auto operator<=>(const Launch&, const Launch&) = default;
};

/// The groups of a communicator in which a rank exchanges messages with all others, both ways.
std::set<Launch> whole_exchanges(const Describer& describe, CommIndex comm) {
  const Job& job = describe.job();
  const std::vector<std::int32_t>& members = job.communicator(comm).members;
  std::set<Launch> whole;
  if (members.size() < 3) return whole;
  for (const std::int32_t rank : members) {
    const ProgramIndex program = job.program_of_rank(rank);
    if (program == kNoProgram || !describe.match().traits[to_size(program)].batched_messages) continue;
    std::map<std::uint32_t, std::pair<std::set<std::int32_t>, std::set<std::int32_t>>> peers;  // by launch: sent to, received from
    for (const Operation& operation : job.program(program).placed_operations()) {
      if (operation.comm != comm || operation.launch == 0 || !is_placed_message(operation) || operation.peer == rank) continue;
      auto& [to, from] = peers[operation.launch];
      (is_send(operation.kind) ? to : from).insert(operation.peer);
    }
    for (const auto& [launch, both] : peers) {
      if (both.first.size() + 1 == members.size() && both.second.size() + 1 == members.size()) whole.insert({rank, launch});
    }
  }
  const bool several = !whole.empty() && whole.begin()->rank != whole.rbegin()->rank;
  return several ? whole : std::set<Launch>{};
}

/// Of three members the middle one of a chain exchanges with all others, too: a rank that exchanges with one member alone, and has no
/// message with the one that holds the left-over call, may be the end of a chain as well as have two empty parts.
bool may_be_end_of_chain(const Describer& describe, CommIndex comm, std::int32_t rank, std::int32_t holder) {
  const Job& job = describe.job();
  const ProgramIndex program = job.program_of_rank(rank);
  if (job.communicator(comm).members.size() != 3 || program == kNoProgram) return false;
  bool sends = false, receives = false;
  for (const Operation& operation : job.program(program).placed_operations()) {
    if (operation.comm != comm || !is_placed_message(operation) || operation.peer == rank) continue;
    if (operation.peer == holder) return false;
    (is_send(operation.kind) ? sends : receives) = true;
  }
  return sends && receives;
}

/// The call that has no partner.
const Operation& left_over(const Describer& describe, const Draft& draft) {
  const std::int32_t rank = draft.message->send_left ? draft.message->sender : draft.message->receiver;
  return describe.operation(describe.job().program_of_rank(rank), draft.first_call);
}

std::uint64_t elements(const Operation& operation) { return operation.count.is_number() ? operation.count.number() : 0; }

Draft joined(const Describer& describe, std::vector<Draft>& parts) {
  Draft draft = std::move(parts.front());
  std::vector<VectorDifference> pairs;
  std::string told;
  constexpr std::size_t kMostTold = 3;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Draft::Message& message = i == 0 ? *draft.message : *parts[i].message;
    const std::uint64_t count = elements(left_over(describe, i == 0 ? draft : parts[i]));
    pairs.push_back({0, message.sender, message.receiver, message.send_left ? count : 0, message.send_left ? 0 : count});
    if (i >= kMostTold) continue;
    told += fmt::format("{}rank {} sends {} to rank {}, which expects {}", i == 0 ? "" : "; ", message.sender,
                        message.send_left ? fmt::format("{} elements", count) : "nothing", message.receiver,
                        message.send_left ? "nothing" : fmt::format("{} elements", count));
  }
  Finding& finding = draft.finding;
  finding.verdict = Verdict::kMismatch;
  finding.finding_class = "size_differs";
  finding.divergent_ranks = common_ranks(pairs);
  finding.divergent_meaning = finding.divergent_ranks.size() == 1 ? DivergentMeaning::kMinority : DivergentMeaning::kNoMajority;
  finding.title = fmt::format("the parts of an exchange of all members of {} do not fit: {}", describe.communicator(draft.comm),
                              told.substr(0, told.find(';')));
  finding.explanation = fmt::format("every member sends to and receives from every other in one group, and leaves out what has no elements; {}{}",
                                    told, pairs.size() > kMostTold ? "; and so on" : "");
  finding.fix = "exchange the counts first (an all_to_all of one number each), and size what is received by what the others send";
  draft.message.reset();
  draft.at_end = false;
  return draft;
}

}  // namespace

void join_missing_parts(const Describer& describe, std::vector<Draft>& drafts) {
  std::map<CommIndex, std::vector<Draft>> parts;
  std::map<CommIndex, std::set<Launch>> exchanges;
  std::vector<Draft> others;
  for (Draft& draft : drafts) {
    bool is_part = draft.message && draft.message->unmatched;
    if (is_part) {
      const auto [at, added] = exchanges.try_emplace(draft.comm);
      if (added) at->second = whole_exchanges(describe, draft.comm);
      const std::int32_t rank = draft.message->send_left ? draft.message->sender : draft.message->receiver;
      const std::int32_t partner = draft.message->send_left ? draft.message->receiver : draft.message->sender;
      is_part = at->second.contains({rank, left_over(describe, draft).launch}) && !may_be_end_of_chain(describe, draft.comm, partner, rank);
    }
    (is_part ? parts[draft.comm] : others).push_back(std::move(draft));
  }
  for (auto& [comm, found] : parts) others.push_back(joined(describe, found));
  drafts = std::move(others);
}

}  // namespace lockstep
