// See the header.
#include "diagnose/shrink_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/rank_ranges.h"

namespace lockstep {
namespace {

/// The ranks that called with one list.
struct Party {
  CommIndex comm = kNoComm;
  std::vector<std::int32_t> ranks{};  // sorted
  ProgramIndex program = kNoProgram;  // the first of them, and its call
  std::uint32_t call = 0;
};

/// Readers name what a shrink meets on by the communicator, the how-manieth shrink of it, and the list: PARENT/shrinkN:LIST.
std::string making_of(const std::string& id) {
  const std::size_t at = id.rfind("/shrink");
  const std::size_t colon = at == std::string::npos ? at : id.find(':', at);
  return colon == std::string::npos ? std::string() : id.substr(0, colon);
}

std::map<std::string, std::vector<Party>> parties_by_making(const Describer& describe) {
  const Job& job = describe.job();
  std::map<std::string, std::vector<Party>> makings;
  for (std::uint32_t c = 0; c < job.communicators().size(); ++c) {
    const std::string making = making_of(job.communicators()[c].id);
    if (making.empty()) continue;
    Party party{.comm = CommIndex{c}};
    for (const MemberCalls& member : describe.match().communicators[c].members) {
      const auto operations = job.program(member.program).placed_operations();
      const auto is_shrink = [&](const Operation& operation) {
        return operation.kind == OpKind::kShrink && operation.comm == party.comm && takes_effect(operation);
      };
      const auto call = std::ranges::find_if(operations, is_shrink);
      if (call == operations.end()) continue;
      if (party.program == kNoProgram) {
        party.program = member.program;
        party.call = static_cast<std::uint32_t>(call - operations.begin());
      }
      party.ranks.push_back(job.program(member.program).rank);
    }
    std::ranges::sort(party.ranks);
    if (!party.ranks.empty()) makings[making].push_back(std::move(party));
  }
  return makings;
}

/// Somebody whom one list keeps has called with another.
bool disagree(const Job& job, const std::vector<Party>& parties) {
  for (const Party& party : parties) {
    for (const Party& other : parties) {
      if (party.comm == other.comm) continue;
      const std::vector<std::int32_t>& kept = job.communicator(party.comm).members;
      const auto is_kept = [&](std::int32_t rank) { return std::ranges::find(kept, rank) != kept.end(); };
      if (std::ranges::any_of(other.ranks, is_kept)) return true;
    }
  }
  return false;
}

Draft draft_of(const Describer& describe, std::vector<Party> parties) {
  std::ranges::stable_sort(parties, std::greater<>(), [](const Party& party) { return party.ranks.size(); });
  const bool majority = parties[0].ranks.size() > parties[1].ranks.size();
  const Party& told = parties.back();
  Draft draft{.finding = {.verdict = Verdict::kMismatch, .finding_class = "creation_differs", .severity = Severity::kCertain},
              .comm = told.comm,
              .stalls = true,
              .first_call = told.call};
  Finding& finding = draft.finding;
  finding.communicator = describe.communicator_view(told.comm);
  finding.position = describe.position(told.program, told.call);
  std::string lists;
  std::set<std::int32_t> divergent;
  for (std::size_t i = 0; i < parties.size(); ++i) {
    const Party& party = parties[i];
    finding.operations.push_back(describe.view(party.program, party.call));
    finding.evidence.push_back(describe.evidence(party.program, party.call));
    lists += fmt::format("{}{} keep{} {}", i == 0 ? "" : ", ", ranks_text(party.ranks), party.ranks.size() == 1 ? "s" : "",
                         ranks_text(describe.job().communicator(party.comm).members));
    if (i > 0 || !majority) divergent.insert(party.ranks.begin(), party.ranks.end());
  }
  finding.divergent_ranks.assign(divergent.begin(), divergent.end());
  finding.divergent_meaning = majority ? DivergentMeaning::kMinority : DivergentMeaning::kNoMajority;
  finding.title = fmt::format("the ranks that shrink a communicator leave out different ones: {}", lists);
  finding.explanation = finding.title + "; a shrink waits for all ranks that its own list keeps, and those with another list do not come to it";
  finding.fix = "let all ranks that stay agree on who is left out before they shrink, and pass the same list everywhere";
  return draft;
}

}  // namespace

std::vector<Draft> shrink_drafts(const Describer& describe) {
  std::vector<Draft> drafts;
  for (auto& [making, parties] : parties_by_making(describe))
    if (parties.size() > 1 && disagree(describe.job(), parties)) drafts.push_back(draft_of(describe, std::move(parties)));
  return drafts;
}

}  // namespace lockstep
