// See the header.
#include "diagnose/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <tuple>

#include "base/rank_ranges.h"

namespace lockstep {
namespace {

std::vector<std::int32_t> intersection(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  std::vector<std::int32_t> both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return both;
}

void append(std::vector<CallCounts>& counts, const std::vector<CallCounts>& more) {
  constexpr std::size_t kMost = 16;
  for (const CallCounts& count : more) {
    if (counts.size() < kMost) counts.push_back(count);
  }
}

/// As many calls too few on one communicator as too many on another, by the same ranks: the calls went to the wrong one.
void join_wrong_communicators(std::vector<Draft>& drafts) {
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    for (std::size_t j = 0; j < drafts.size(); ++j) {
      Draft& lacks = drafts[i];
      const Draft& has = drafts[j];
      if (i == j || lacks.missing == 0 || lacks.extra != 0 || has.extra != lacks.missing || has.missing != 0) continue;
      if (lacks.comm == has.comm || lacks.signature != has.signature) continue;
      const std::vector<std::int32_t> ranks =
          intersection(lacks.finding.divergent_ranks, has.finding.divergent_ranks);
      if (ranks.empty()) continue;
      Finding& finding = lacks.finding;
      finding.finding_class = "wrong_communicator";
      finding.divergent_ranks = ranks;
      finding.title = fmt::format("{} makes {} call{} too few on {} and as many too many on {}", ranks_text(ranks),
                                  lacks.missing, lacks.missing == 1 ? "" : "s", finding.communicator->name,
                                  has.finding.communicator->name);
      finding.explanation += "; " + has.finding.explanation + ": the same number is missing here and surplus there, so the calls "
                             "went to the other group";
      finding.fix = "use the same group at this call on all ranks: look for the condition that chooses it";
      append(finding.counts, has.finding.counts);
      lacks.stalls = lacks.stalls || has.stalls;
      drafts.erase(drafts.begin() + static_cast<std::ptrdiff_t>(j));
      if (j < i) --i;
      break;
    }
  }
}

/// What a rank that ended lacks everywhere is told once, at the place where others wait for it.
void join_ends(std::vector<Draft>& drafts) {
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    if (!drafts[i].at_end) continue;
    for (std::size_t j = i + 1; j < drafts.size();) {
      const auto& ranks = drafts[i].finding.divergent_ranks;
      const bool same_root = drafts[j].at_end && !intersection(ranks, drafts[j].finding.divergent_ranks).empty();
      if (!same_root) {
        ++j;
        continue;
      }
      // Between two that differ in how many ranks they leave in doubt, the narrower is the better evidence.
      if (drafts[j].finding.divergent_ranks.size() < ranks.size() && drafts[j].finding.divergent_meaning != DivergentMeaning::kNoMajority) {
        drafts[i].finding.divergent_ranks = drafts[j].finding.divergent_ranks;
        drafts[i].finding.divergent_meaning = drafts[j].finding.divergent_meaning;
      }
      append(drafts[i].finding.counts, drafts[j].finding.counts);
      drafts.erase(drafts.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

/// A send and a receive between the same two ranks that have no partner, for their tags differ.
bool is_wrong_tag(const Draft& waits, const Draft& sends) {
  const Draft::Message& a = *waits.message;
  const Draft::Message& b = *sends.message;
  return !a.send_left && waits.comm == sends.comm && a.sender == b.sender && a.receiver == b.receiver && a.tag != b.tag;
}

void tell_wrong_tag(Draft& waits, const Draft& sends) {
  const Draft::Message& a = *waits.message;
  waits.finding.title = fmt::format("rank {} waits for a message with tag {} from rank {}, which sends one with tag {}", a.receiver,
                                    a.tag, a.sender, sends.message->tag);
  waits.finding.fix = "use the same tag on both sides";
}

/// A send too many to one rank and a receive too many on another, by one rank: it talks to the wrong one. Or to the right one under
/// another tag.
void join_wrong_peers(std::vector<Draft>& drafts) {
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    for (std::size_t j = 0; j < drafts.size(); ++j) {
      if (i == j || !drafts[i].message || !drafts[j].message) continue;
      Draft& waits = drafts[i];
      const Draft::Message& a = *drafts[i].message;
      const Draft::Message& b = *drafts[j].message;
      if (!a.unmatched || !b.unmatched || a.send_left == b.send_left) continue;
      // Seen from the rank that waits for nothing: its partner made the call, to somebody else.
      const bool wrong_send = !a.send_left && a.sender == b.sender && a.receiver != b.receiver;
      const bool wrong_receive = a.send_left && a.receiver == b.receiver && a.sender != b.sender;
      const bool wrong_tag = is_wrong_tag(drafts[i], drafts[j]);
      if (!wrong_send && !wrong_receive && !wrong_tag) continue;
      const std::int32_t rank = wrong_send ? a.sender : a.receiver;
      Finding& finding = waits.finding;
      if (wrong_tag) {
        tell_wrong_tag(waits, drafts[j]);
      } else {
        finding.title = wrong_send ? fmt::format("rank {} sends to rank {} what rank {} waits for", rank, b.receiver, a.receiver)
                                 : fmt::format("rank {} receives from rank {} what rank {} sends", rank, b.sender, a.sender);
        finding.fix = fmt::format("check how rank {} computes its peer at this call", rank);
        finding.divergent_ranks = {rank};
        finding.divergent_meaning = DivergentMeaning::kMinority;
      }
      finding.explanation += "; " + drafts[j].finding.explanation;
      waits.stalls = waits.stalls || drafts[j].stalls;
      waits.at_end = false;
      drafts.erase(drafts.begin() + static_cast<std::ptrdiff_t>(j));
      if (j < i) --i;
      j = drafts.size();
    }
  }
}

/// Calls of the rank on the communicator of the draft beyond what another member makes; 0 where counts are equal or not given.
std::int64_t surplus_of(const Draft& draft, std::int32_t rank) {
  if (draft.finding.counts.empty()) return 0;
  const auto& by_rank = draft.finding.counts.front().by_rank;
  const auto own = by_rank.find(rank);
  const auto other = std::ranges::find_if(by_rank, [&](const auto& entry) { return entry.first != rank; });
  if (own == by_rank.end() || other == by_rank.end()) return 0;
  return static_cast<std::int64_t>(own->second) - static_cast<std::int64_t>(other->second);
}

/// A rank that makes as many calls too few on one communicator as too many on another took another path through the program
/// that many times, whatever calls stand on it.
void note_path_swaps(std::vector<Draft>& drafts) {
  for (Draft& first : drafts) {
    for (const Draft& second : drafts) {
      if (&first == &second || first.message || second.message || first.comm == second.comm) continue;
      for (const std::int32_t rank : intersection(first.finding.divergent_ranks, second.finding.divergent_ranks)) {
        const std::int64_t surplus = surplus_of(first, rank);
        if (surplus == 0 || surplus_of(second, rank) != -surplus) continue;
        first.finding.explanation += fmt::format(
            "; rank {} makes {} call{} too {} on {} and as many too {} on {}: it took another path through the program as often",
            rank, std::abs(surplus), std::abs(surplus) == 1 ? "" : "s", surplus < 0 ? "few" : "many",
            first.finding.communicator->name, surplus < 0 ? "many" : "few", second.finding.communicator->name);
        return;
      }
    }
  }
}

void sort_drafts(std::vector<Draft>& drafts) {
  std::ranges::stable_sort(drafts, {}, [](const Draft& draft) {
    const bool refused = draft.finding.finding_class == "call_refused";  // an error code is where it began
    return std::tuple(draft.finding.severity, draft.is_effect, !refused, !draft.stalls, draft.first_call, !draft.is_cycle);
  });
}

bool are_alike(const Finding& a, const Finding& b) {
  if (a.verdict != Verdict::kDeadlock || b.verdict != Verdict::kDeadlock || a.severity != b.severity) return false;
  if (a.finding_class != b.finding_class || !a.position || !b.position) return false;
  const auto shape = [](const Finding& finding) {
    std::vector<std::pair<std::string, std::string>> calls;
    for (const WaitFor& wait : finding.wait_for) {
      const auto& site = wait.operation.site;
      calls.emplace_back(wait.operation.op, site.empty() ? "" : site.front().function);
    }
    std::ranges::sort(calls);
    calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
    return calls;
  };
  return a.position->op == b.position->op && shape(a) == shape(b);
}

/// One cause repeated along an axis (each data-parallel replica has its own pipeline) is one finding.
void join_alike_cycles(std::vector<Draft>& drafts) {
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    std::size_t joined = 0;
    for (std::size_t j = i + 1; j < drafts.size();) {
      if (!are_alike(drafts[i].finding, drafts[j].finding)) {
        ++j;
        continue;
      }
      Finding& finding = drafts[i].finding;
      Finding& other = drafts[j].finding;
      finding.divergent_ranks.insert(finding.divergent_ranks.end(), other.divergent_ranks.begin(), other.divergent_ranks.end());
      append(finding.counts, other.counts);
      finding.wait_for.insert(finding.wait_for.end(), std::make_move_iterator(other.wait_for.begin()),
                              std::make_move_iterator(other.wait_for.end()));
      finding.wait_for_omitted += other.wait_for_omitted;
      drafts.erase(drafts.begin() + static_cast<std::ptrdiff_t>(j));
      ++joined;
    }
    if (joined == 0) continue;
    Finding& finding = drafts[i].finding;
    auto& ranks = finding.divergent_ranks;
    std::ranges::sort(ranks);
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    finding.title += fmt::format(", and {} more set{} of ranks likewise", joined, joined == 1 ? "" : "s");
    // A victim of one set may be a cause in another.
    std::vector<WaitFor> once;
    for (WaitFor& wait : finding.wait_for) {
      if (std::ranges::find(once, wait.rank, &WaitFor::rank) == once.end()) once.push_back(std::move(wait));
    }
    finding.wait_for = std::move(once);
  }
}

}  // namespace

void join_differences(std::vector<Draft>& drafts) {
  sort_drafts(drafts);
  join_wrong_communicators(drafts);
  join_wrong_peers(drafts);
  join_ends(drafts);
  note_path_swaps(drafts);
}

void adopt_difference(Draft& cycle, const std::vector<CommIndex>& cycle_communicators,
                      const std::vector<std::int32_t>& cycle_ranks, std::vector<Draft>& differences) {
  const auto brings_about = [&](const Draft& difference) {
    return difference.finding.severity <= Severity::kContractViolation && !difference.holds_nobody &&
           std::ranges::find(cycle_communicators, difference.comm) != cycle_communicators.end() &&
           !intersection(difference.finding.divergent_ranks, cycle_ranks).empty();
  };
  auto root = std::ranges::find_if(differences, brings_about);
  // Ranks that make another communicator are missed at this one: what they do instead says more.
  if (root != differences.end() && root->finding.finding_class == "creation_not_joined") {
    const auto makes_another = [&](const Draft& difference) {
      return difference.finding.finding_class == "creation_differs" && brings_about(difference);
    };
    if (const auto other = std::ranges::find_if(differences, makes_another); other != differences.end()) root = other;
  }
  if (root == differences.end()) {
    cycle.is_effect = std::ranges::any_of(differences, [&](const Draft& difference) {
      return difference.finding.severity <= Severity::kContractViolation && !difference.holds_nobody;
    });
    return;
  }
  Finding& finding = cycle.finding;
  Finding& from = root->finding;
  // Calls on the wrong group leave two groups waiting for each other, but nobody has to reorder anything.
  // The same where each rank makes a communicator of its own.
  const bool makes_another = from.finding_class == "creation_differs" && finding.verdict == Verdict::kOrder;
  if (from.finding_class == "wrong_communicator" || makes_another) finding.verdict = from.verdict;
  if (finding.verdict == Verdict::kDeadlock) {
    finding.explanation = from.title + "; " + from.explanation;
  } else {
    finding.title = from.title;
    finding.explanation = from.explanation;
    finding.models.clear();
  }
  finding.finding_class = std::move(from.finding_class);
  finding.fix = std::move(from.fix);
  finding.communicator = std::move(from.communicator);
  finding.position = std::move(from.position);
  finding.divergent_ranks = std::move(from.divergent_ranks);
  finding.divergent_meaning = from.divergent_meaning;
  finding.operations = std::move(from.operations);
  std::vector<CallCounts> counts = std::move(from.counts);
  for (CallCounts& own : finding.counts) {
    const bool known = std::ranges::any_of(counts, [&](const CallCounts& count) {
      return count.communicator == own.communicator && count.members == own.members && count.call_site == own.call_site;
    });
    if (!known) counts.push_back(std::move(own));
  }
  finding.counts = std::move(counts);
  finding.evidence.insert(finding.evidence.begin(), from.evidence.begin(), from.evidence.end());
  cycle.first_call = root->first_call;
  differences.erase(root);
}

std::vector<Finding> merge_drafts(std::vector<Draft> drafts) {
  sort_drafts(drafts);
  join_alike_cycles(drafts);
  std::vector<Finding> findings;
  for (Draft& draft : drafts) findings.push_back(std::move(draft.finding));
  return findings;
}

}  // namespace lockstep
