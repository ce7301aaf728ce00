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
#include "diagnose/describe.h"
#include "diagnose/device_rules.h"
#include "diagnose/difference.h"
#include "diagnose/draft.h"
#include "diagnose/exchange_totals.h"
#include "diagnose/joined_progress.h"
#include "diagnose/message_findings.h"
#include "diagnose/nccl_deviations.h"
#include "diagnose/refused_calls.h"
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
    if (drafts_.empty() && !is_advancing()) add_model_findings();
    if (drafts_.empty() || std::ranges::none_of(drafts_, [](const Draft& d) { return decides(d.finding); })) {
      add_open_questions();
    }
    return report();
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

  static bool decides(const Finding& finding) { return finding.severity <= Severity::kContractViolation; }

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

  /// What a stricter reading would stall on: other models, and completion that an unlucky run would not have had.
  void add_model_findings() {
    const bool any_completed = std::ranges::any_of(match_.traits, &ProgramTraits::completed);
    const bool groups = job_.library() == Library::kNccl && std::ranges::any_of(match_.traits, &ProgramTraits::batches);
    if (groups) add_model_finding({.model = models_.front(), .groups_as_written = true}, Severity::kContractViolation);
    if (!drafts_.empty()) return;
    add_order_of_empty_calls();
    if (!drafts_.empty()) return;
    for (const BlockingModel model : models_) {
      if (model == models_.front()) continue;
      const bool ordered_by_user = job_.library() == Library::kNccl && model == BlockingModel::kBlocking &&
                                   job_.library_version() != 0 && job_.library_version() < 22600;
      add_model_finding({.model = model, .groups_as_written = groups}, job_.library() == Library::kMpi ? Severity::kUnsafe
                                          : ordered_by_user               ? Severity::kContractViolation
                                                                          : Severity::kPotential);
      if (!drafts_.empty()) return;
    }
    if (any_completed) add_model_finding({.model = models_.front(), .trust_completion = false}, Severity::kUnsafe);
  }

  /// Calls of no elements that stand in another order across communicators. The run gets by, since NCCL enqueues none of them;
  /// with data it would not, and NCCL's documentation asks for one order. Nothing else may be what it stands in.
  void add_order_of_empty_calls() {
    const bool any = job_.library() == Library::kNccl && std::ranges::any_of(match_.traits, &ProgramTraits::zero_counts);
    if (!any || match_.pairs_apart) return;
    ReplayOptions options{.model = models_.front(), .trust_completion = false};
    if (!replay(job_, match_, options).finished()) return;
    options.empty_calls_meet = true;
    add_model_finding(options, Severity::kContractViolation);
  }

  void add_model_finding(const ReplayOptions& options, Severity severity) {
    const bool is_kept = options.trust_completion && !options.empty_calls_meet;
    const ReplayResult& stalled = is_kept ? replays_.of(options.model, options.groups_as_written)
                                          : other_replay_ = replay(job_, match_, options);
    for (const Cause& cause : find_causes(job_, stalled)) {
      if (cause.kind != CauseKind::kCycle) continue;
      if (options.model == BlockingModel::kCoupled && !couples_batches(stalled, cause)) continue;
      // Beside NCCL, what only MPI's strict rules hold up depends on its buffers.
      if (job_.mixes_libraries() && severity == Severity::kPotential && is_of_mpi(stalled, cause)) severity = Severity::kUnsafe;
      Finding finding = cycle_finding(describe_, stalled, cause);
      finding.severity = severity;
      finding.models = {std::string(blocking_model_name(options.model))};
      if (options.groups_as_written && options.model == models_.front()) {
        finding.explanation += "; they stand in groups, and NCCL since 2.26.2 puts the communicators of a group in an order of its own, so "
                               "this run can end; its documentation asks for one order all the same";
      }
      if (options.empty_calls_meet) {
        finding.explanation += "; the calls of no elements are not enqueued, so this run can end; with data it would not";
      }
      if (options.model == BlockingModel::kCoupled) {
        finding.finding_class = "batch_coupling";
        std::set<std::int32_t> coupled;
        for (const std::size_t stuck : cause.stuck) {
          for (const ProgramIndex program : stalled.stuck[stuck].arrived) coupled.insert(job_.program(program).rank);
        }
        finding.divergent_ranks.assign(coupled.begin(), coupled.end());
        finding.title = fmt::format("the batches of {} end only together, and some are issued after the end of others",
                                    ranks_text(finding.divergent_ranks));
        finding.fix = "issue one batch per peer, in the order of the peers, so that no batch waits for the end of another";
      } else if (severity == Severity::kUnsafe) {
        finding.finding_class = "relies_on_buffering";
      }
      drafts_.push_back({.finding = std::move(finding)});
      return;
    }
  }

  bool is_of_mpi(const ReplayResult& stalled, const Cause& cause) const {
    return std::ranges::all_of(cause.stuck, [&](std::size_t s) {
      const GateIndex gate = stalled.stuck[s].gate;
      if (gate == kNoGate) return false;
      const GateOwner owner = owner_of(match_, gate);
      return job_.library_of(owner.comm != kNoComm ? owner.comm : match_.channels[owner.channel].comm) == Library::kMpi;
    });
  }

  /// A cycle that only the common end of several batches closes. One batch against single calls progresses part by part.
  bool couples_batches(const ReplayResult& stalled, const Cause& cause) const {
    std::set<std::int32_t> ranks;
    for (const BlockedOperation& blocked : stalled.blocked) {
      if (!std::ranges::binary_search(cause.stuck, blocked.stuck)) continue;
      const auto& operations = job_.program(blocked.program).operations;
      const std::uint32_t launch = operations[blocked.operation].launch;
      if (launch == 0) continue;
      const bool several = std::ranges::count(operations, launch, &Operation::launch) > 1;
      if (several) ranks.insert(job_.program(blocked.program).rank);
    }
    return ranks.size() > 1;
  }

  void add_open_questions() {
    if (is_advancing()) {
      add_absent_members();
    } else if (standstill_.finished()) {
      if (auto unfinished = unfinished_finding(describe_)) drafts_.push_back({.finding = std::move(*unfinished)});
      add_absent_members();
    }
    add_killed();
    add_unknown_ends();
    add_undecided();
  }

  void add_note(Verdict verdict, std::string_view finding_class, std::string title, std::string fix,
                std::vector<std::int32_t> ranks) {
    Finding finding{.verdict = verdict, .finding_class = std::string(finding_class), .severity = Severity::kNote};
    finding.title = std::move(title);
    finding.fix = std::move(fix);
    finding.divergent_ranks = std::move(ranks);
    if (!finding.divergent_ranks.empty()) finding.divergent_meaning = DivergentMeaning::kAbsent;
    drafts_.push_back({.finding = std::move(finding)});
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
    const bool told = std::ranges::any_of(drafts_, [](const Draft& draft) {
      return draft.finding.verdict == Verdict::kOtherCause;
    });
    if (ranks.empty() || told) return;
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
      } else if (program.end.kind == EndKind::kUnknown || (program.end.kind == EndKind::kRunning && !is_advancing())) {
        unknown.push_back(program.rank);
      }
    }
    const bool explained = std::ranges::any_of(drafts_, [](const Draft& draft) {
      return draft.finding.verdict == Verdict::kInsufficient || draft.finding.verdict == Verdict::kOtherCause;
    });
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

  Report report() {
    Report report;
    report.run = {.name = job_.run().name, .attempt = job_.run().attempt, .others = job_.run().others};
    report.findings = merge_drafts(std::move(drafts_));
    set_verdict(report);
    set_suspects(report);
    set_quality(report);
    report.progress.state = progress();
    if (seen_) report.progress.stalled_for_s = seen_->stalled_for_s;
    for (const Finding& finding : report.findings) {
      if (finding.verdict == Verdict::kInsufficient && !finding.fix.empty()) report.next_evidence.push_back(finding.fix);
    }
    return report;
  }

  void set_verdict(Report& report) const {
    std::size_t communicators = 0;
    for (const CommunicatorMatch& communicator : match_.communicators) communicators += communicator.positions > 0 ? 1 : 0;
    std::set<CommIndex> of_messages;
    for (const ChannelMatch& channel : match_.channels) {
      if (match_.communicators[to_size(channel.comm)].positions == 0) of_messages.insert(channel.comm);
    }
    communicators += of_messages.size();
    report.summary = fmt::format("{} rank{}, {} communicator{}, {} calls", job_.programs().size(),
                                 job_.programs().size() == 1 ? "" : "s", communicators, communicators == 1 ? "" : "s",
                                 job_.operation_count() + job_.earlier_call_count());
    const auto deciding = std::ranges::find_if(report.findings, decides);
    const auto open = std::ranges::find_if(report.findings, [](const Finding& finding) {
      return finding.severity == Severity::kNote &&
             (finding.verdict == Verdict::kOtherCause || finding.verdict == Verdict::kInsufficient);
    });
    if (deciding != report.findings.end()) {
      report.verdict = deciding->verdict;
    } else if (open != report.findings.end()) {
      report.verdict = open->verdict;
    } else {
      report.verdict = job_.programs().empty() ? Verdict::kInsufficient : Verdict::kConsistent;
    }
    switch (report.verdict) {
      case Verdict::kMismatch:
      case Verdict::kImbalance:
      case Verdict::kOrder:
      case Verdict::kDeadlock:
        report.action = Action::kFixCode;
        break;
      case Verdict::kOtherCause:
      case Verdict::kInsufficient:
        report.action = Action::kCollectMore;
        break;
      case Verdict::kConsistent:
        report.action = Action::kNone;
        break;
    }
    set_nodes(report);
  }

  /// Nodes are named only where their own evidence is the cause.
  void set_nodes(Report& report) const {
    if (report.verdict != Verdict::kOtherCause || report.findings.empty() || !report.findings.front().nodes.told) return;
    const Finding::Nodes& nodes = report.findings.front().nodes;
    report.action = Action::kInspectNodes;
    std::set<std::string> hosts(nodes.hosts.begin(), nodes.hosts.end());
    std::set<std::int32_t> ranks(nodes.ranks.begin(), nodes.ranks.end());
    for (const std::int32_t rank : nodes.ranks) {
      if (const std::string host = place_of(rank).host; !host.empty()) hosts.insert(host);
    }
    const auto is_named = [&](const std::string& host) { return hosts.contains(host); };
    for (const Program& program : job_.programs()) {
      if (is_named(program.place.host)) ranks.insert(program.rank);
    }
    for (const auto& [rank, reported] : reported_.places) {
      if (is_named(reported.place.host)) ranks.insert(rank);
    }
    report.action_ranks.assign(ranks.begin(), ranks.end());
    report.action_hosts.assign(hosts.begin(), hosts.end());
  }

  /// As the record of the rank says; what it does not say, as logs do.
  Place place_of(std::int32_t rank) const {
    const ProgramIndex program = job_.program_of_rank(rank);
    Place place = program == kNoProgram ? Place{} : job_.program(program).place;
    const auto reported = reported_.places.find(rank);
    if (reported == reported_.places.end()) return place;
    const Place& told = reported->second.place;
    if (place.host.empty()) place.host = told.host;
    if (place.pid == 0) place.pid = told.pid;
    if (!place.local_rank) place.local_rank = told.local_rank;
    if (place.device.empty()) place.device = told.device;
    return place;
  }

  void set_suspects(Report& report) const {
    if (report.findings.empty()) return;
    constexpr std::size_t kMost = 64;
    const Finding& first = report.findings.front();
    const Confidence confidence =
        !decides(first)                                                  ? Confidence::kPossible
        : first.divergent_meaning == DivergentMeaning::kNoMajority || first.verdict == Verdict::kDeadlock
            ? Confidence::kLikely
                                                                         : Confidence::kCertain;
    std::set<std::int32_t> told;
    const auto add = [&](std::int32_t rank, std::string_view role) {
      if (report.suspects.size() >= kMost || !told.insert(rank).second) return;
      const auto reported = reported_.places.find(rank);
      report.suspects.push_back({.rank = rank,
                                 .role = std::string(role),
                                 .confidence = confidence,
                                 .place = place_of(rank),
                                 .pod = reported == reported_.places.end() ? std::string{} : reported->second.pod});
    };
    if (first.severity == Severity::kPotential || first.severity == Severity::kUnsafe) return;
    for (const std::int32_t rank : first.divergent_ranks) add(rank, "cause");
    for (const WaitFor& wait : first.wait_for) add(wait.rank, "victim");
  }

  void set_quality(Report& report) const {
    const InputQuality& quality = job_.quality();
    report.input_quality.ranks_expected = quality.ranks_expected;
    report.input_quality.complete = quality.complete;
    report.input_quality.warnings = quality.warnings;
    for (const Contradiction& contradiction : contradictions_) report.input_quality.warnings.push_back(contradiction.text);
    for (const Program& program : job_.programs()) {
      report.input_quality.ranks_seen.push_back(program.rank);
      if (program.tail_missing || program.head_missing) report.input_quality.complete = false;
    }
  }

  ProgressState progress() const {
    if (seen_) return seen_->state;
    if (!standstill_.finished()) return ProgressState::kStalled;
    const bool all_ended = std::ranges::all_of(job_.programs(), [](const Program& program) {
      return program.end.kind == EndKind::kExited || program.end.kind == EndKind::kKilled;
    });
    return all_ended ? ProgressState::kEnded : ProgressState::kUnknown;
  }

  const Job& job_;
  const std::optional<Observation>& seen_;
  const ReportedEvidence& reported_;
  const MatchResult match_;
  const Describer describe_;
  const std::vector<BlockingModel> models_;
  ModelReplays replays_;
  ReplayResult other_replay_;  // under options that are not kept
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
