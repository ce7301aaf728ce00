// See the header.
#include "diagnose/open_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/rank_ranges.h"
#include "diagnose/standstill_findings.h"

namespace lockstep {
namespace {

class OpenQuestions {
 public:
  OpenQuestions(const Describer& describe, bool advancing, std::span<const Draft> told)
      : describe_(describe), job_(describe.job()), match_(describe.match()), advancing_(advancing), told_(told) {}

  std::vector<Finding> ask(bool finished) {
    const bool has_reason = std::ranges::any_of(told_, [](const Draft& draft) { return draft.finding.finding_class == "creation_not_joined"; });
    if (finished && !advancing_ && !has_reason) {
      if (auto unfinished = unfinished_finding(describe_)) found_.push_back(std::move(*unfinished));
    }
    if (finished || advancing_) add_absent_members();
    add_killed();
    add_unknown_ends();
    add_undecided();
    return std::move(found_);
  }

 private:
  bool is_told(Verdict verdict) const {
    return std::ranges::any_of(told_, [&](const Draft& draft) { return draft.finding.verdict == verdict; }) ||
           std::ranges::any_of(found_, [&](const Finding& finding) { return finding.verdict == verdict; });
  }

  void add_note(Verdict verdict, std::string_view finding_class, std::string title, std::string fix,
                std::vector<std::int32_t> ranks) {
    Finding finding{.verdict = verdict, .finding_class = std::string(finding_class), .severity = Severity::kNote};
    finding.title = std::move(title);
    finding.fix = std::move(fix);
    finding.divergent_ranks = std::move(ranks);
    if (!finding.divergent_ranks.empty()) finding.divergent_meaning = DivergentMeaning::kAbsent;
    found_.push_back(std::move(finding));
  }

  void add_absent_members() {
    std::set<std::int32_t> absent;
    for (std::uint32_t c = 0; c < match_.communicators.size(); ++c) {
      if (match_.communicators[c].positions == 0) continue;
      for (const std::int32_t rank : job_.communicator(CommIndex{c}).members) {
        if (job_.program_of_rank(rank) == kNoProgram) absent.insert(rank);
      }
    }
    for (const ChannelMatch& channel : match_.channels) {
      for (const std::int32_t rank : {channel.sender, channel.receiver}) {
        if (job_.program_of_rank(rank) == kNoProgram) absent.insert(rank);
      }
    }
    if (absent.empty()) return;
    const std::vector<std::int32_t> ranks(absent.begin(), absent.end());
    add_note(Verdict::kInsufficient, "evidence_missing",
             fmt::format("there is no record of {}; the calls of the others agree", ranks_text(ranks)),
             fmt::format("collect the record of {}", ranks_text(ranks)), ranks);
  }

  void add_killed() {
    std::vector<std::int32_t> ranks;
    int signal = 0;
    for (const Program& program : job_.programs()) {
      if (program.end.kind != EndKind::kKilled) continue;
      ranks.push_back(program.rank);
      signal = program.end.status;
    }
    if (ranks.empty() || is_told(Verdict::kOtherCause)) return;
    add_note(Verdict::kOtherCause, "peer_crashed",
             fmt::format("{} {} killed by signal {}; no call differs up to there", ranks_text(ranks),
                         ranks.size() == 1 ? "was" : "were", signal),
             "find out what killed the process: the kernel log (out of memory, machine check), the scheduler, the core dump", ranks);
  }

  void add_unknown_ends() {
    std::vector<std::int32_t> cut;
    std::vector<std::int32_t> unknown;
    for (const Program& program : job_.programs()) {
      if (program.tail_missing) {
        cut.push_back(program.rank);
      } else if (program.end.kind == EndKind::kUnknown || (program.end.kind == EndKind::kRunning && !advancing_)) {
        unknown.push_back(program.rank);
      }
    }
    const bool explained = is_told(Verdict::kInsufficient) || is_told(Verdict::kOtherCause);
    if (!cut.empty() && !explained) {
      add_note(Verdict::kInsufficient, "evidence_missing",
               fmt::format("the record of {} is cut; nothing differs in what can be read", ranks_text(cut)),
               fmt::format("collect the whole record of {}", ranks_text(cut)), cut);
    }
    if (!unknown.empty() && cut.empty() && !explained) {
      add_note(Verdict::kInsufficient, "unfinished_snapshot",
               fmt::format("nothing differs so far, but {} had not ended when the record was taken", ranks_text(unknown)),
               "take a second record some seconds later: if nobody has moved, it is a standstill", {});
    }
    if (cut.empty() && unknown.empty() && !explained && !job_.quality().complete) {
      add_note(Verdict::kInsufficient, "evidence_missing", "part of the input could not be used; nothing differs in the rest",
               "see the warnings, and collect again what they name", {});
    }
  }

  void add_undecided() {
    if (match_.undecided_messages + match_.opaque_calls == 0) return;
    add_note(Verdict::kInsufficient, "evidence_missing",
             fmt::format("{} calls cannot be decided (receives from any rank or with any tag, one-sided, persistent, between "
                         "groups); nothing differs in the others", match_.undecided_messages + match_.opaque_calls),
             "give receives their source and tag, or check the matching of these calls by hand", {});
  }

  const Describer& describe_;
  const Job& job_;
  const MatchResult& match_;
  const bool advancing_;
  const std::span<const Draft> told_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> open_questions(const Describer& describe, bool finished, bool advancing, std::span<const Draft> found) {
  return OpenQuestions(describe, advancing, found).ask(finished);
}

}  // namespace lockstep
