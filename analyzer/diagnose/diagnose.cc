// The order of the questions: do calls differ, does replay come to its end, is every rank accounted for. What is left
// without a finding is `consistent` only where every program ended.
#include "diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/rank_ranges.h"
#include "diagnose/collective_findings.h"
#include "diagnose/contradictions.h"
#include "diagnose/cycle_finding.h"
#include "diagnose/describe.h"
#include "diagnose/device_rules.h"
#include "diagnose/difference.h"
#include "diagnose/draft.h"
#include "diagnose/exchange_totals.h"
#include "diagnose/grow_findings.h"
#include "diagnose/joined_progress.h"
#include "diagnose/message_findings.h"
#include "diagnose/model_findings.h"
#include "diagnose/nccl_deviations.h"
#include "diagnose/open_questions.h"
#include "diagnose/refused_calls.h"
#include "diagnose/report_assembly.h"
#include "diagnose/reported_findings.h"
#include "diagnose/rule_findings.h"
#include "diagnose/shared_hosts.h"
#include "diagnose/signal_findings.h"
#include "diagnose/standstill_findings.h"
#include "diagnose/stopped_ranks.h"
#include "diagnose/wait_graph.h"
#include "match/match.h"
#include "model/gloo.h"
#include "replay/model_replays.h"
#include "replay/replay.h"

namespace lockstep {
namespace {

std::vector<CommunicatorDifference> find_differences(const Job& job, const MatchResult& match) {
  std::vector<CommIndex> unequal;
  for (std::uint32_t c = 0; c < match.communicators.size(); ++c) {
    if (!match.communicators[c].agreed) unequal.push_back(CommIndex{c});
  }
  std::vector<CommunicatorDifference> differences;
  constexpr std::size_t kAtOnce = 64;  // bounds the memory of the sequences
  for (std::size_t from = 0; from < unequal.size(); from += kAtOnce) {
    const std::span part = std::span(unequal).subspan(from, std::min(kAtOnce, unequal.size() - from));
    for (CallSequences& sequences : collect_sequences(job, match, part)) {
      if (auto difference = find_difference(job, std::move(sequences))) differences.push_back(std::move(*difference));
    }
  }
  return differences;
}

class Diagnosis {
 public:
  Diagnosis(const Job& job, const std::optional<Observation>& seen, const ReportedEvidence& reported)
      : job_(job), seen_(seen), reported_(reported), match_(match(job)), describe_(job, match_), models_(distinct_models(job, match_)),
        replays_(job, match_, models_) {}

  Report run() {
    standstill_ = replays_.of(models_.front());
    causes_ = find_causes(job_, standstill_);
    leave_out_what_moves();
    add_lost_differences();
    add_deviations();
    add_messages();
    std::ranges::move(rule_drafts(describe_), std::back_inserter(drafts_));
    for (Draft& draft : exchange_drafts(describe_)) drafts_.push_back(std::move(draft));
    std::ranges::move(refused_self_messages(describe_), std::back_inserter(drafts_));
    std::ranges::move(signal_drafts(describe_), std::back_inserter(drafts_));
    if (!is_advancing()) std::ranges::move(grow_drafts(describe_, seen_.has_value()), std::back_inserter(drafts_));
    join_differences(drafts_);
    join_stopped_ranks(describe_, standstill_, causes_, drafts_);
    add_cycles();
    add_absences();
    add_outsiders();
    add_reported();
    if (!reported_.empty() && !job_.programs().empty()) {
      for (Draft& draft : drafts_) tell_stacks(reported_, draft.finding);
    }
    weigh_contradictions();
    if (drafts_.empty() && !is_advancing()) {
      if (auto finding = model_finding(describe_, models_, replays_)) drafts_.push_back({.finding = std::move(*finding)});
    }
    if (std::ranges::none_of(drafts_, [](const Draft& draft) { return decides(draft.finding); })) {
      for (Finding& open : open_questions(describe_, standstill_.finished(), is_advancing(), drafts_)) {
        drafts_.push_back({.finding = std::move(open)});
      }
    }
    Report report = assemble_report({job_, match_, seen_, reported_, standstill_.finished()}, merge_drafts(std::move(drafts_)));
    for (const Contradiction& contradiction : contradictions_) report.input_quality.warnings.push_back(contradiction.text);
    return report;
  }

 private:
  bool is_advancing() const { return seen_ && seen_->state == ProgressState::kAdvancing; }

  /// A rank that moved between two looks does not stand where the record shows it.
  void leave_out_what_moves() {
    if (!seen_) return;
    const auto moved = [&](std::int32_t rank) { return std::ranges::binary_search(seen_->moved, rank); };
    std::erase_if(causes_, [&](const Cause& cause) {
      if (cause.kind == CauseKind::kUnequalCalls) return false;
      return std::ranges::any_of(cause.ranks, moved) || (!cause.victims.empty() && std::ranges::all_of(cause.victims, moved));
    });
  }

  void add_reported() {
    const bool decided = std::ranges::any_of(drafts_, [](const Draft& draft) { return decides(draft.finding); });
    std::vector<Draft> drafts = reported_drafts(reported_, job_, decided);
    // What logs add goes behind what the calls show, but for an event on a rank that comes to no further call: that is why.
    const auto explains = [&](const Draft& event) {
      return !drafts_.empty() && std::ranges::all_of(drafts_, [&](const Draft& draft) {
        const bool stops = draft.finding.finding_class == "never_arrived" || draft.finding.finding_class == "early_exit" ||
                           draft.finding.finding_class == "host_frozen" || !decides(draft.finding);
        return stops && (!decides(draft.finding) || std::ranges::any_of(event.finding.divergent_ranks, [&](std::int32_t rank) {
          return std::ranges::find(draft.finding.divergent_ranks, rank) != draft.finding.divergent_ranks.end();
        }));
      });
    };
    for (Draft& draft : drafts) {
      if (decided && draft.finding.severity == Severity::kCertain) {
        if (explains(draft)) {
          for (Draft& effect : drafts_) effect.is_effect = true;
        } else {
          draft.finding.severity = Severity::kNote;
        }
      }
      drafts_.push_back(std::move(draft));
    }
  }

  /// What rests on evidence that contradicts itself decides nothing.
  void weigh_contradictions() {
    contradictions_ = find_contradictions(job_, reported_);
    std::vector<const Contradiction*> weighing;
    const bool decided = std::ranges::any_of(drafts_, [](const Draft& draft) { return decides(draft.finding); });
    for (const Contradiction& contradiction : contradictions_) {
      bool weighs = !decided;
      for (Draft& draft : drafts_) {
        if (draft.finding.verdict == Verdict::kInsufficient || !is_touched(draft.finding, contradiction, reported_)) continue;
        if (decides(draft.finding)) {
          draft.finding.explanation += "; the evidence for it contradicts itself: " + contradiction.text;
          draft.finding.severity = Severity::kNote;
        }
        draft.is_effect = true;
        weighs = true;
      }
      if (weighs) weighing.push_back(&contradiction);
    }
    if (weighing.empty()) return;
    Finding finding{.verdict = Verdict::kInsufficient, .finding_class = "evidence_contradicts", .severity = Severity::kNote};
    finding.title = weighing.front()->text;
    if (weighing.size() > 1) finding.title += fmt::format(", and {} more", weighing.size() - 1);
    for (const Contradiction* contradiction : weighing) {
      finding.explanation += (finding.explanation.empty() ? "" : "; ") + contradiction->text;
      for (const Evidence& place : contradiction->evidence) {
        if (std::ranges::find(finding.evidence, place) == finding.evidence.end()) finding.evidence.push_back(place);
      }
    }
    finding.fix = "give only what is of one run and one moment: the log, the dumps and the stacks of the same attempt";
    drafts_.insert(drafts_.begin(), {.finding = std::move(finding), .stalls = true});
  }

  std::vector<std::string> models_that_stall() {
    std::vector<std::string> names;
    for (const BlockingModel model : models_) {
      if (model == models_.front() || !replays_.of(model).finished()) {
        names.emplace_back(blocking_model_name(model));
      }
    }
    // Without messages NCCL has nothing to buffer.
    if (job_.library() == Library::kNccl && std::ranges::find(models_, BlockingModel::kEager) == models_.end()) {
      names.insert(names.begin() + 1, "eager");
    }
    // Models that are not told apart for this job block alike.
    if (models_.size() == 1) names = {"lazy", "eager", "blocking"};
    return names;
  }

  void add_cycles() {
    std::vector<std::string> names;
    std::vector<Draft> cycles;
    for (const Cause& cause : causes_) {
      if (cause.kind != CauseKind::kCycle) continue;
      if (names.empty()) names = models_that_stall();
      Draft draft{.finding = cycle_finding(describe_, standstill_, cause), .stalls = true, .is_cycle = true};
      draft.finding.models = names;
      describe_device_rules(describe_, standstill_, cause, models_, draft.finding);
      std::vector<CommIndex> communicators;
      for (const std::size_t s : cause.stuck) {
        if (standstill_.stuck[s].gate == kNoGate) continue;
        const GateOwner owner = owner_of(match_, standstill_.stuck[s].gate);
        communicators.push_back(owner.comm != kNoComm ? owner.comm : match_.channels[owner.channel].comm);
      }
      adopt_difference(draft, communicators, cause.ranks, drafts_);
      cycles.push_back(std::move(draft));
    }
    std::ranges::move(cycles, std::back_inserter(drafts_));
  }

  /// The cause whose ranks stand at, or are missed at, a call of the communicator.
  const Cause* cause_on(CommIndex comm) const {
    for (const Cause& cause : causes_) {
      for (const std::size_t s : cause.stuck) {
        const GateIndex gate = standstill_.stuck[s].gate;
        if (gate != kNoGate && owner_of(match_, gate).comm == comm) return &cause;
      }
    }
    return nullptr;
  }

  void add_deviations() {
    for (const CommunicatorDifference& difference : find_differences(job_, match_)) {
      const Cause* cause = cause_on(difference.comm);
      std::vector<Deviation> told;
      for (const Deviation& deviation : difference.deviations) std::ranges::move(told_apart(describe_, difference, deviation), std::back_inserter(told));
      for (const Deviation& deviation : told) {
        Draft draft{.finding = deviation_finding(describe_, difference, deviation),
                    .comm = difference.comm,
                    .stalls = cause != nullptr};
        if (cause != nullptr) add_wait_for(describe_, standstill_, *cause, draft.finding);
        draft.holds_nobody = apply_nccl_leniency(describe_, difference, deviation, standstill_, draft.finding);
        measure(difference, deviation, draft);
        explain_refused_call(describe_, draft);
        drafts_.push_back(std::move(draft));
      }
    }
  }

  /// Calls that differ although no record holds them any more.
  void add_lost_differences() {
    for (std::uint32_t c = 0; c < job_.communicators().size(); ++c) {
      const auto& difference = job_.communicator(CommIndex{c}).lost_difference;
      if (!difference || difference->parties.size() < 2) continue;
      Draft draft{.finding = lost_difference_finding(describe_, CommIndex{c}, *difference), .stalls = true};
      drafts_.push_back(std::move(draft));
    }
  }

  void measure(const CommunicatorDifference& difference, const Deviation& deviation, Draft& draft) const {
    for (const Edit& edit : deviation.alignment.edits) {
      if (edit.kind != EditKind::kExtra) ++draft.missing;
      if (edit.kind != EditKind::kMissing) ++draft.extra;
    }
    const Edit& first = deviation.alignment.edits.front();
    const std::size_t reference = difference.variants[0].longest;
    const std::size_t other = difference.variants[deviation.variant].longest;
    const bool missing = first.kind != EditKind::kExtra;
    const ProgramIndex program = difference.sequences.members[missing ? reference : other];
    draft.first_call = missing ? difference.sequences.operations[reference][first.reference]
                               : difference.sequences.operations[other][first.other];
    draft.signature = signature(job_, describe_.operation(program, draft.first_call));
    // One whole sequence is a prefix of the other: the end is missing, or, seen from the other side, surplus.
    const std::size_t shorter = std::min(difference.sequences.operations[reference].size(),
                                         difference.sequences.operations[other].size());
    draft.at_end = first.kind != EditKind::kSubstituted && std::min<std::size_t>(first.reference, first.other) == shorter;
  }

  void add_messages() {
    for (Draft& draft : message_drafts(describe_)) {
      explain_refused_call(describe_, draft);
      for (const Cause& cause : causes_) {
        const bool concerns = std::ranges::any_of(draft.finding.divergent_ranks, [&](std::int32_t rank) {
          return std::ranges::binary_search(cause.ranks, rank);
        });
        if (!concerns || !draft.finding.wait_for.empty() || cause.kind == CauseKind::kUnequalCalls) continue;
        add_wait_for(describe_, standstill_, cause, draft.finding);
        draft.stalls = true;
      }
      drafts_.push_back(std::move(draft));
    }
  }

  /// A finding names all ranks of the cause as those that come to nothing more.
  bool is_told(const Cause& cause) const {
    return cause.kind != CauseKind::kNoRecord && cause.kind != CauseKind::kCutRecord && std::ranges::any_of(drafts_, [&](const Draft& draft) {
      return draft.at_end && draft.stalls && std::ranges::includes(draft.finding.divergent_ranks, cause.ranks);
    });
  }

  void add_absences() {
    for (const Cause& cause : causes_) {
      if (cause.kind == CauseKind::kCycle || cause.kind == CauseKind::kUnequalCalls) continue;
      // What a rank lacks that ended and left a whole record is a difference, and told as one.
      const bool compared = std::ranges::all_of(cause.ranks, [&](std::int32_t rank) {
                              return job_.program_of_rank(rank) != kNoProgram;
                            }) &&
                            std::ranges::any_of(cause.stuck, [&](std::size_t s) {
                              return standstill_.stuck[s].gate != kNoGate;  // a probe has nothing to compare with
                            });
      const bool told = (cause.kind == CauseKind::kEnded && compared) || is_told(cause);
      if (told) continue;
      drafts_.push_back({.finding = absence_finding(describe_, standstill_, cause), .stalls = true});
      if (cause.kind == CauseKind::kNoRecord || cause.kind == CauseKind::kCutRecord) {
        join_reported_progress(job_, reported_, drafts_.back().finding);
      }
      if (!is_advancing() && explain_shared_host(describe_, standstill_, cause, drafts_.back().finding)) continue;
      // In one look a rank may be on its way. In two of a job that stands, it is there and does something else.
      const bool stays_away = cause.kind == CauseKind::kStandsElsewhere && seen_ && seen_->state == ProgressState::kStalled &&
                              never_joins(describe_, standstill_, cause);
      if (!stays_away) continue;
      Finding& finding = drafts_.back().finding;
      finding.verdict = Verdict::kImbalance;
      finding.finding_class = "never_arrived";
      finding.severity = Severity::kContractViolation;
    }
  }

  void add_outsiders() {
    for (std::uint32_t c = 0; c < match_.communicators.size(); ++c) {
      if (match_.communicators[c].outsiders.empty()) continue;
      const bool joined_twice = std::ranges::any_of(drafts_, [&](const Draft& draft) {
        return draft.comm == CommIndex{c} && draft.finding.finding_class == "init_ranks_differ";
      });
      if (joined_twice) continue;  // who of them is the member is not known
      std::vector<std::int32_t> ranks;
      for (const ProgramIndex program : match_.communicators[c].outsiders) ranks.push_back(job_.program(program).rank);
      Finding finding{.verdict = Verdict::kMismatch, .finding_class = "wrong_communicator"};
      // In torch a call on a group by a rank outside it warns and does nothing.
      finding.severity = job_.library() == Library::kTorch || job_.library() == kGlooLibrary ? Severity::kNote : Severity::kContractViolation;
      finding.title = fmt::format("{} call{} on {} without being a member", ranks_text(ranks), ranks.size() == 1 ? "s" : "",
                                  describe_.communicator(CommIndex{c}));
      finding.explanation = finding.title + "; the calls were left out of the comparison";
      finding.fix = "use a group that the rank belongs to, or skip the call on ranks outside it";
      finding.communicator = describe_.communicator_view(CommIndex{c});
      finding.divergent_ranks = ranks;
      finding.divergent_meaning = DivergentMeaning::kExtra;
      drafts_.push_back({.finding = std::move(finding)});
    }
  }

  const Job& job_;
  const std::optional<Observation>& seen_;
  const ReportedEvidence& reported_;
  const MatchResult match_;
  const Describer describe_;
  const std::vector<BlockingModel> models_;
  ModelReplays replays_;
  ReplayResult standstill_;
  std::vector<Cause> causes_;
  std::vector<Draft> drafts_;
  std::vector<Contradiction> contradictions_;
};

}  // namespace

Report diagnose(const Job& job, const std::optional<Observation>& seen, const ReportedEvidence& reported) {
  return Diagnosis(job, seen, reported).run();
}

}  // namespace lockstep
