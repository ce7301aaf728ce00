#include "cli/alike_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

class Widener {
 public:
  Widener(const plan::Expansion& expansion, const plan::AlikeRanks& alike) : expansion_(expansion), alike_(alike) {}

  void widen(Finding& finding) const {
    if (finding.communicator) widen_members(finding.communicator->name, finding.communicator->ranks);
    for (OperationView& operation : finding.operations) widen_members(operation.communicator, operation.members);
    for (CallCounts& counts : finding.counts) {
      widen_members(counts.communicator, counts.members);
      for (const std::int32_t rank : counts.members) {
        const auto known = counts.by_rank.find(alike_.image_of(rank));
        if (known != counts.by_rank.end()) counts.by_rank.emplace(rank, known->second);
      }
    }
    std::vector<std::int32_t> standing;
    for (WaitFor& wait : finding.wait_for) {
      widen_members(wait.operation.communicator, wait.operation.members);
      standing.push_back(wait.rank);
    }
    finding.wait_for_omitted += alike_.all_like(standing).size() - finding.wait_for.size();
    std::vector<std::int32_t> divergent = alike_.all_like(finding.divergent_ranks);
    if (divergent.size() > finding.divergent_ranks.size())
      finding.title += fmt::format(", and {} rank{} likewise", divergent.size() - finding.divergent_ranks.size(),
                                   divergent.size() - finding.divergent_ranks.size() == 1 ? "" : "s");
    finding.divergent_ranks = std::move(divergent);
    finding.explanation += fmt::format("; {} of {} ranks were replayed: the others do the same as one of these",
                                       alike_.kept.size(), alike_.image.size());
  }

  void widen(std::vector<Suspect>& suspects) const {
    constexpr std::size_t kMost = 64;
    const std::vector<Suspect> named = suspects;
    for (const Suspect& suspect : named)
      for (const std::int32_t rank : alike_.all_like(std::span(&suspect.rank, 1))) {
        if (suspects.size() >= kMost) return;
        if (std::ranges::find(suspects, rank, &Suspect::rank) != suspects.end()) continue;
        suspects.push_back(suspect);
        suspects.back().rank = rank;
      }
  }

 private:
  void widen_members(const std::string& family, std::vector<std::int32_t>& members) const {
    if (members.empty()) return;
    if (const plan::RankList* const group = expansion_.layout.group(family, members.front())) members = *group;
  }

  const plan::Expansion& expansion_;
  const plan::AlikeRanks& alike_;
};

}  // namespace

bool can_tell_of_all_ranks(const plan::Expansion& expansion) {
  return !expansion.alike || keeps_majorities(expansion.layout, *expansion.alike, expansion.program_of);
}

void tell_of_all_ranks(const plan::Expansion& expansion, Report& report) {
  if (!expansion.alike) return;
  const Widener widener(expansion, *expansion.alike);
  for (Finding& finding : report.findings) widener.widen(finding);
  widener.widen(report.suspects);
  report.action_ranks = expansion.alike->all_like(report.action_ranks);
  const auto world = static_cast<std::size_t>(expansion.layout.world);
  report.input_quality.ranks_expected = world;
  report.input_quality.ranks_seen.resize(world);
  std::iota(report.input_quality.ranks_seen.begin(), report.input_quality.ranks_seen.end(), 0);
}

}  // namespace lockstep
