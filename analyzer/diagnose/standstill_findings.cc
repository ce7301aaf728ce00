// See the header.
#include "diagnose/standstill_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/rank_ranges.h"

namespace lockstep {
namespace {

/// The text report folds equal rows; this only bounds the JSON of a job of many thousand ranks.
constexpr std::size_t kMostVictims = 4096;

bool contains(const std::vector<std::int32_t>& sorted, std::int32_t rank) {
  return std::ranges::binary_search(sorted, rank);
}

std::string end_text(const ProgramEnd& end, bool one = true) {
  switch (end.kind) {
    case EndKind::kExited:
      if (end.status == ProgramEnd::kStatusUnknown) return one ? "makes no further call" : "make no further call";
      return fmt::format("exited with status {}", end.status);
    case EndKind::kKilled:
      return fmt::format("{} killed by signal {}", one ? "was" : "were", end.status);
    case EndKind::kRunning:
      return one ? "is still there, outside any call" : "are still there, outside any call";
    case EndKind::kUnknown:
      return one ? "makes no further call; what became of it is not recorded" : "make no further call; what became of them is not recorded";
  }
  return "";
}

}  // namespace

std::vector<std::int32_t> missing_ranks(const Job& job, const StuckGate& stuck) {
  std::vector<std::int32_t> ranks = stuck.never;
  for (const ProgramIndex program : stuck.later) ranks.push_back(job.program(program).rank);
  std::ranges::sort(ranks);
  return ranks;
}

void add_wait_for(const Describer& describe, const ReplayResult& replay, const Cause& cause, Finding& finding) {
  const Job& job = describe.job();
  const auto add = [&](const BlockedOperation& blocked) {
    finding.wait_for.push_back({.rank = job.program(blocked.program).rank,
                                .operation = describe.view(blocked.program, blocked.operation),
                                .waits_for = missing_ranks(job, replay.stuck[blocked.stuck])});
  };
  std::set<std::int32_t> told;
  const bool in_calls = cause.kind == CauseKind::kCycle || cause.kind == CauseKind::kUnequalCalls;
  for (const BlockedOperation& blocked : replay.blocked) {
    const std::int32_t rank = job.program(blocked.program).rank;
    if (!in_calls || !contains(cause.ranks, rank) || !std::ranges::binary_search(cause.stuck, blocked.stuck)) continue;
    if (told.insert(rank).second) add(blocked);
  }
  for (const std::int32_t rank : cause.ranks) {
    if (in_calls || told.size() >= kMostVictims) break;
    if (told.insert(rank).second) {
      finding.wait_for.push_back({.rank = rank, .operation = {.rank = rank}, .why = end_text(job.end_of_rank(rank))});
    }
  }
  std::size_t victims = 0;
  for (const BlockedOperation& blocked : replay.blocked) {
    const std::int32_t rank = job.program(blocked.program).rank;
    if (!contains(cause.victims, rank) || told.contains(rank)) continue;
    told.insert(rank);
    if (++victims <= kMostVictims) {
      add(blocked);
    } else {
      ++finding.wait_for_omitted;
    }
  }
}

Finding absence_finding(const Describer& describe, const ReplayResult& replay, const Cause& cause) {
  const Job& job = describe.job();
  Finding finding;
  const BlockedOperation* first = nullptr;
  for (const BlockedOperation& blocked : replay.blocked) {
    if (first == nullptr && std::ranges::binary_search(cause.stuck, blocked.stuck)) first = &blocked;
  }
  const std::string who = ranks_text(cause.ranks);
  const bool one = cause.ranks.size() == 1;
  const std::string waiting = first == nullptr ? "" : describe.call(first->program, first->operation);
  finding.divergent_ranks = cause.ranks;
  finding.divergent_meaning = DivergentMeaning::kAbsent;
  if (first != nullptr) {
    finding.position = describe.position(first->program, first->operation);
    finding.communicator = describe.communicator_view(describe.operation(first->program, first->operation).comm);
    finding.operations = {describe.view(first->program, first->operation)};
    finding.evidence = {describe.evidence(first->program, first->operation)};
  }
  switch (cause.kind) {
    case CauseKind::kKilled:
      finding.verdict = Verdict::kOtherCause;
      finding.finding_class = "peer_crashed";
      finding.severity = Severity::kCertain;
      finding.title = fmt::format("{} {} before {}", who, end_text(job.end_of_rank(cause.ranks.front()), one), waiting);
      finding.explanation = fmt::format("{} and made no further call; {} wait{} for {} in {}. Up to there the calls agree: the "
                                        "order of calls is not what stopped the job",
                                        finding.title.substr(0, finding.title.find(" before ")), ranks_text(cause.victims),
                                        cause.victims.size() == 1 ? "s" : "", one ? "it" : "them", waiting);
      finding.fix = "find out what killed the process: the kernel log (out of memory, machine check), the scheduler, the core dump";
      break;
    case CauseKind::kEnded:
    case CauseKind::kStandsElsewhere:
      finding.verdict = Verdict::kImbalance;
      finding.finding_class = "early_exit";
      finding.severity = Severity::kCertain;
      finding.title = fmt::format("{} never come{} to {}", who, one ? "s" : "", waiting);
      finding.explanation = fmt::format("{} {}; {} wait{} for {} in {}", who, end_text(job.end_of_rank(cause.ranks.front()), one),
                                        ranks_text(cause.victims), cause.victims.size() == 1 ? "s" : "", one ? "it" : "them", waiting);
      finding.fix = "let the rank that leaves tell the others first, so that all leave at the same call";
      if (cause.kind == CauseKind::kStandsElsewhere) {
        finding.verdict = Verdict::kInsufficient;
        finding.finding_class = "evidence_missing";
        finding.severity = Severity::kNote;
        finding.fix = fmt::format("look where {} stand{}: a stack of it (py-spy dump, gdb) decides", who, one ? "s" : "");
      }
      break;
    case CauseKind::kCutRecord:
    case CauseKind::kNoRecord:
    case CauseKind::kCycle:
    case CauseKind::kUnequalCalls:
      finding.verdict = Verdict::kInsufficient;
      finding.finding_class = "evidence_missing";
      finding.severity = Severity::kNote;
      finding.title = fmt::format("{} wait{} in {} for {}, of which {}", ranks_text(cause.victims),
                                  cause.victims.size() == 1 ? "s" : "", waiting, who,
                                  cause.kind == CauseKind::kNoRecord ? "there is no record" : "the record is cut");
      finding.explanation = fmt::format("whether {} {} a call, stand{} elsewhere or {} gone cannot be told without a whole record",
                                        who, one ? "lacks" : "lack", one ? "s" : "", one ? "is" : "are");
      finding.fix = fmt::format("collect the record, log or stack of {}", who);
      break;
  }
  add_wait_for(describe, replay, cause, finding);
  if (cause.kind == CauseKind::kNoRecord || cause.kind == CauseKind::kCutRecord) {
    for (WaitFor& wait : finding.wait_for) {
      if (contains(cause.ranks, wait.rank)) wait.why = cause.kind == CauseKind::kNoRecord ? "left no record" : "its record is cut";
    }
  }
  return finding;
}

bool never_joins(const Describer& describe, const ReplayResult& replay, const Cause& cause) {
  const Job& job = describe.job();
  const bool alive = std::ranges::all_of(cause.ranks, [&](std::int32_t rank) {
    return job.program_of_rank(rank) != kNoProgram && job.end_of_rank(rank).kind == EndKind::kRunning;
  });
  return alive && std::ranges::any_of(cause.stuck, [&](std::size_t s) {
    const StuckGate& stuck = replay.stuck[s];
    if (!stuck.later.empty() || stuck.arrived.empty() || stuck.never.size() != cause.ranks.size()) return false;
    const auto held = std::ranges::find(replay.blocked, s, &BlockedOperation::stuck);
    return held != replay.blocked.end() && describe.operation(held->program, held->operation).kind == OpKind::kInit;
  });
}

std::optional<Finding> unfinished_finding(const Describer& describe) {
  const Job& job = describe.job();
  struct OpenCall {
    ProgramIndex program = kNoProgram;
    std::uint32_t operation = 0;
  };
  std::vector<OpenCall> open;
  for (std::uint32_t p = 0; p < job.programs().size(); ++p) {
    const Program& program = job.programs()[p];
    if (is_closed(program)) continue;  // it went on to its end: what is not known to be complete is only not known
    for (std::uint32_t i = 0; i < program.operations.size(); ++i) {
      const Operation& operation = program.operations[i];
      const bool in_flight = operation.state == OpState::kEntered || operation.state == OpState::kEnqueued ||
                             operation.state == OpState::kStarted;
      if (in_flight && takes_effect(operation) && (is_collective(operation.kind) || is_point_to_point(operation.kind))) {
        open.push_back({ProgramIndex{p}, i});
        break;  // those behind it wait for it
      }
    }
  }
  if (open.empty()) return std::nullopt;
  std::vector<std::int32_t> ranks;
  for (const OpenCall& call : open) ranks.push_back(job.program(call.program).rank);
  const OpenCall& first = open.front();
  const Operation& model = describe.operation(first.program, first.operation);
  bool same_call = is_collective(model.kind);
  for (const OpenCall& call : open) {
    const Operation& other = describe.operation(call.program, call.operation);
    same_call = same_call && other.comm == model.comm && other.seq == model.seq;
  }
  const bool everyone = same_call && model.comm != kNoComm &&
                        open.size() == job.communicator(model.comm).members.size();
  Finding finding;
  finding.divergent_ranks = {};
  finding.communicator = model.comm == kNoComm ? std::nullopt
                                               : std::optional(describe.communicator_view(model.comm));
  finding.position = describe.position(first.program, first.operation);
  finding.operations = {describe.view(first.program, first.operation)};
  finding.evidence = {describe.evidence(first.program, first.operation)};
  finding.severity = Severity::kNote;
  const std::string call = describe.call(first.program, first.operation);
  // The hosts went on from it, and a stream may hold it back: nobody is known to be in it.
  const bool only_enqueued = std::ranges::all_of(open, [&](const OpenCall& other) {
    return describe.operation(other.program, other.operation).state == OpState::kEnqueued;
  });
  const std::string no_end = only_enqueued ? fmt::format("all members enqueued {}, and it ended on none of them", call)
                                           : fmt::format("all members entered {} and none came out of it", call);
  const bool root_is_hidden = has_root(model.kind) && model.peer == kNoPeer && job.library() == Library::kTorch;
  if (everyone && root_is_hidden) {
    finding.verdict = Verdict::kInsufficient;
    finding.finding_class = "evidence_missing";
    finding.title = no_end + "; its root is not in the record";
    finding.explanation = fmt::format("{} agree in all that the record holds, but it does not hold the root, nor the reduction: members "
                                      "that name different roots would look just like this{}", ranks_text(ranks), describe.from_site(model));
    finding.fix = fmt::format("print the root that each rank passes to this {}; TORCH_DISTRIBUTED_DEBUG=DETAIL does not compare it",
                              op_name(model.kind));
  } else if (everyone) {
    finding.verdict = Verdict::kOtherCause;
    finding.finding_class = "agreed_but_not_completed";
    finding.title = no_end;
    finding.explanation = fmt::format("{} make the same calls up to and including {}{}; the order of calls is not what stopped "
                                      "the job", ranks_text(ranks), call, describe.from_site(model));
    finding.fix = fmt::format("look at {}what carries the call: device errors (Xid, ECC), link and fabric state, the transport's log; a "
                              "second record some seconds later tells a standstill from a slow call",
                              only_enqueued ? "what stands before it on its stream (a kernel that does not end), and at " : "");
  } else {
    finding.verdict = Verdict::kInsufficient;
    finding.finding_class = "unfinished_snapshot";
    finding.title = fmt::format("{} {} inside {}, and nothing differs so far", ranks_text(ranks), ranks.size() == 1 ? "is" : "are", call);
    finding.explanation = "the calls agree as far as the records go; members that have come out of a call and others that have not "
                          "are normal in a job that runs";
    finding.fix = "take a second record some seconds later: if nobody has moved, it is a standstill";
  }
  return finding;
}

}  // namespace lockstep
