// See the header.
#include "diagnose/rule_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/rank_ranges.h"
#include "diagnose/shrink_findings.h"

namespace lockstep {
namespace {

void place(const Describer& describe, CommIndex comm, ProgramIndex program, std::uint32_t call, Draft& draft) {
  draft.comm = comm;
  draft.first_call = call;
  draft.finding.communicator = describe.communicator_view(comm);
  draft.finding.position = describe.position(program, call);
  draft.finding.operations.push_back(describe.view(program, call));
  draft.finding.evidence.push_back(describe.evidence(program, call));
}

/// "rank 1 sends 3 elements to rank 0, which expects 4", or "rank 1 sends f32 to rank 0, which expects f64".
std::string pair_text(const Describer& describe, CommIndex comm, const VectorDifference& pair, bool with_unit) {
  const Job& job = describe.job();
  const auto type_of = [&](std::int32_t rank) {
    const ProgramIndex program = job.program_of_rank(rank);
    const auto call = call_at(describe, program, comm, pair.seq);
    return call ? std::string(job.datatype(describe.operation(program, *call).datatype)) : std::string();
  };
  if (pair.sent == pair.expected) {
    return fmt::format("rank {} sends {} to rank {}, which expects {}", pair.sender, type_of(pair.sender), pair.receiver, type_of(pair.receiver));
  }
  return fmt::format("rank {} sends {}{} to rank {}, which expects {}", pair.sender, pair.sent, !with_unit ? "" : (pair.sent == 1 ? " element" : " elements"), pair.receiver,
                     pair.expected);
}

Draft vector_draft(const Describer& describe, CommIndex comm, const std::vector<VectorDifference>& pairs) {
  const VectorDifference& first = pairs.front();
  Draft draft{.finding = {.verdict = Verdict::kMismatch, .finding_class = "size_differs", .severity = Severity::kCertain},
              .stalls = true};
  Finding& finding = draft.finding;
  finding.divergent_ranks = common_ranks(pairs);
  finding.divergent_meaning =
      finding.divergent_ranks.size() == 1 ? DivergentMeaning::kMinority : DivergentMeaning::kNoMajority;
  if (first.sent == first.expected) finding.finding_class = "datatype_differs";
  finding.title = fmt::format("{} at #{} on {}", pair_text(describe, comm, first, true), first.seq, describe.communicator(comm));
  const ProgramIndex sender = describe.job().program_of_rank(first.sender);
  const ProgramIndex receiver = describe.job().program_of_rank(first.receiver);
  const auto sends = call_at(describe, sender, comm, first.seq);
  const auto receives = call_at(describe, receiver, comm, first.seq);
  if (sends) place(describe, comm, sender, *sends, draft);
  if (receives) finding.operations.push_back(describe.view(receiver, *receives));
  const auto has_completed = [&](ProgramIndex program, const std::optional<std::uint32_t>& call) {
    return call && describe.operation(program, *call).state == OpState::kCompleted;
  };
  if (has_completed(sender, sends) && has_completed(receiver, receives)) {
    finding.severity = Severity::kContractViolation;  // this library got by; what has arrived is another matter
    draft.stalls = false;
  }
  finding.explanation = fmt::format("what a rank sends to another must be what that one expects from it; at #{} on {} {} of the pairs "
                                    "of ranks do not agree: ", first.seq, describe.communicator(comm), pairs.size());
  constexpr std::size_t kMostTold = 3;
  for (std::size_t i = 0; i < std::min(pairs.size(), kMostTold); ++i) {
    finding.explanation += (i == 0 ? "" : "; ") + pair_text(describe, comm, pairs[i], false);
  }
  if (pairs.size() > kMostTold) finding.explanation += "; and so on";
  finding.fix = "exchange the counts first (an all_to_all of one number each), and size what is received by what the others send";
  return draft;
}

Draft partition_draft(const Describer& describe, CommIndex comm, std::uint32_t seq) {
  const Job& job = describe.job();
  Draft draft{.finding = {.verdict = Verdict::kMismatch, .finding_class = "group_partition_differs",
                          .severity = Severity::kContractViolation}};
  std::vector<std::int32_t> joined;
  std::vector<std::int32_t> apart;
  for (const MemberCalls& member : describe.match().communicators[to_size(comm)].members) {
    const auto call = call_at(describe, member.program, comm, seq);
    const auto before = seq == 0 ? std::nullopt : call_at(describe, member.program, comm, seq - 1);
    if (!call || !before) continue;
    const std::uint32_t launch = describe.operation(member.program, *call).launch;
    const bool together = launch != 0 && describe.operation(member.program, *before).launch == launch;
    (together ? joined : apart).push_back(job.program(member.program).rank);
    if (draft.finding.operations.empty()) place(describe, comm, member.program, *call, draft);
  }
  const bool majority = joined.size() != apart.size();
  const auto& fewer = joined.size() < apart.size() ? joined : apart;
  draft.finding.divergent_ranks = fewer;
  draft.finding.divergent_meaning = DivergentMeaning::kMinority;
  if (!majority) {
    draft.finding.divergent_ranks.insert(draft.finding.divergent_ranks.end(), joined.begin(), joined.end());
    std::ranges::sort(draft.finding.divergent_ranks);
    draft.finding.divergent_meaning = DivergentMeaning::kNoMajority;
  }
  draft.finding.title = fmt::format("{} issue #{} and #{} on {} in one group, {} in two", ranks_text(joined), seq - 1, seq,
                                    describe.communicator(comm), ranks_text(apart));
  draft.finding.explanation = draft.finding.title + "; NCCL orders the calls of a group and chooses how to run them by all of the "
                              "group, so ranks with other groups may run them in another order or by another algorithm";
  draft.finding.fix = "open and close groups at the same calls on all ranks";
  return draft;
}

/// Inits of one communicator that state different sizes.
void add_size_drafts(const Describer& describe, std::vector<Draft>& drafts) {
  std::map<CommIndex, std::map<std::uint64_t, std::vector<OperationRef>>> by_size;
  for (const OperationRef& call : describe.match().noteworthy) {
    const Operation& operation = describe.operation(call.program, call.operation);
    const std::vector<std::uint64_t>& size = describe.job().extra(operation).counts;
    if (operation.kind != OpKind::kInit || operation.comm == kNoComm || size.size() != 1) continue;
    by_size[operation.comm][size.front()].push_back(call);
  }
  for (const auto& [comm, sizes] : by_size) {
    if (sizes.size() < 2) continue;
    const auto usual = std::ranges::max_element(sizes, {}, [](const auto& entry) { return entry.second.size(); });
    const bool majority = std::ranges::count_if(sizes, [&](const auto& entry) { return entry.second.size() == usual->second.size(); }) == 1;
    Draft draft{.finding = {.verdict = Verdict::kMismatch, .finding_class = "init_ranks_differ", .severity = Severity::kCertain},
                .stalls = true};
    std::string text;
    for (const auto& [size, calls] : sizes) {
      std::vector<std::int32_t> ranks;
      for (const OperationRef& call : calls) ranks.push_back(describe.job().program(call.program).rank);
      text += fmt::format("{}{} {} {} members", text.empty() ? "" : ", ", ranks_text(ranks), ranks.size() == 1 ? "states" : "state", size);
      if (majority && size == usual->first) continue;
      if (draft.finding.operations.empty()) place(describe, comm, calls.front().program, calls.front().operation, draft);
      draft.finding.divergent_ranks.insert(draft.finding.divergent_ranks.end(), ranks.begin(), ranks.end());
    }
    std::ranges::sort(draft.finding.divergent_ranks);
    draft.finding.divergent_meaning = majority ? DivergentMeaning::kMinority : DivergentMeaning::kNoMajority;
    draft.finding.title = fmt::format("the members of {} state different sizes of it: {}", describe.communicator(comm), text);
    draft.finding.explanation = draft.finding.title + "; NCCL makes a communicator only where all members state one size";
    draft.finding.fix = "take the size from one place that all processes share";
    drafts.push_back(std::move(draft));
  }
}

/// Of members that are given twice. All that joined belong to what came of it, whom of them the record took for a member or not.
void finish_init_draft(const Describer& describe, CommIndex comm, Finding& finding) {
  std::set<std::int32_t> joined(finding.divergent_ranks.begin(), finding.divergent_ranks.end());
  for (const OperationRef& call : describe.match().noteworthy) {
    const Operation& operation = describe.operation(call.program, call.operation);
    if (operation.kind == OpKind::kInit && operation.comm == comm) joined.insert(describe.job().program(call.program).rank);
  }
  finding.communicator->ranks.assign(joined.begin(), joined.end());
  std::ranges::sort(finding.divergent_ranks);
  finding.explanation = finding.title + "; the ranks given at initialisation must be all numbers from 0 to the size, each once: "
                        "the others wait for the member that nobody is";
  finding.fix = "give every process a rank of its own in the communicator, and every communicator an id of its own";
}

/// Inits of one communicator: the ranks and the size that the members gave.
void add_init_drafts(const Describer& describe, std::vector<Draft>& drafts) {
  std::map<std::pair<CommIndex, std::string>, std::vector<OperationRef>> by_key;
  for (const OperationRef& call : describe.match().noteworthy) {
    const Operation& operation = describe.operation(call.program, call.operation);
    const std::string& key = describe.job().extra(operation).key;
    if (operation.kind != OpKind::kInit || operation.comm == kNoComm || key.empty() || !takes_effect(operation)) continue;
    by_key[{operation.comm, key}].push_back(call);
  }
  std::map<CommIndex, std::size_t> told;  // index into drafts: one finding a communicator
  for (const auto& [what, calls] : by_key) {
    std::set<std::int32_t> ranks;
    for (const OperationRef& call : calls) ranks.insert(describe.job().program(call.program).rank);
    if (ranks.size() < 2) continue;
    const auto [at, added] = told.try_emplace(what.first, drafts.size());
    if (added) {
      drafts.push_back({.finding = {.verdict = Verdict::kMismatch, .finding_class = "init_ranks_differ", .severity = Severity::kCertain},
                        .stalls = true});
      place(describe, what.first, calls.front().program, calls.front().operation, drafts.back());
    }
    Finding& finding = drafts[at->second].finding;
    finding.divergent_ranks.insert(finding.divergent_ranks.end(), ranks.begin(), ranks.end());
    finding.divergent_meaning = DivergentMeaning::kNoMajority;
    const std::string same = fmt::format("{} join{} as the same member {}", ranks_text(std::vector(ranks.begin(), ranks.end())),
                                         added ? " " + describe.communicator(what.first) : "", what.second);
    finding.title += (added ? "" : ", ") + same;
  }
  for (const auto& [comm, at] : told) finish_init_draft(describe, comm, drafts[at].finding);
  add_size_drafts(describe, drafts);
}

/// Calls of NCCL on a communicator that the rank itself has ended. One finding a communicator.
void add_used_after_end(const Describer& describe, std::vector<Draft>& drafts) {
  const Job& job = describe.job();
  std::map<CommIndex, std::size_t> told;  // index into drafts
  for (std::uint32_t p = 0; p < job.programs().size(); ++p) {
    const auto operations = job.programs()[p].placed_operations();
    std::map<CommIndex, std::uint32_t> ended;  // by which call
    std::set<CommIndex> told_of_rank;
    for (std::uint32_t i = describe.match().traits[p].first_end; i < operations.size(); ++i) {
      const Operation& operation = operations[i];
      if (operation.comm == kNoComm || job.library_of(operation.comm) != Library::kNccl) continue;
      const bool ends = operation.kind == OpKind::kDestroy || operation.kind == OpKind::kAbort || operation.kind == OpKind::kFinalize;
      if (ends || operation.kind == OpKind::kInit) {
        if (operation.kind == OpKind::kInit) ended.erase(operation.comm);
        else if (takes_effect(operation)) ended.try_emplace(operation.comm, i);
        continue;
      }
      const auto end = ended.find(operation.comm);
      const bool calls = is_collective(operation.kind) || is_point_to_point(operation.kind);
      if (end == ended.end() || !calls || !told_of_rank.insert(operation.comm).second) continue;
      const auto [at, added] = told.try_emplace(operation.comm, drafts.size());
      const std::int32_t rank = job.programs()[p].rank;
      if (!added) {
        drafts[at->second].finding.divergent_ranks.push_back(rank);
        continue;
      }
      Draft draft{.finding = {.verdict = Verdict::kOrder, .finding_class = "used_after_end", .severity = Severity::kUndefinedBehaviour}};
      place(describe, operation.comm, ProgramIndex{p}, i, draft);
      const Operation& by = operations[end->second];
      draft.finding.divergent_ranks = {rank};
      draft.finding.divergent_meaning = DivergentMeaning::kMinority;
      draft.finding.title = fmt::format("{} on {} after {} of it", op_name(operation.kind), describe.communicator(operation.comm), op_name(by.kind));
      draft.finding.explanation =
          fmt::format("rank {} calls {}{} on {} after {}{} has ended it: the handle stands for nothing any more", rank,
                      describe.arguments(operation), describe.from_site(operation), describe.communicator(operation.comm),
                      op_name(by.kind), describe.from_site(by));
      draft.finding.fix = "end the communicator after its last call, and let nobody keep the handle";
      draft.finding.evidence.push_back(describe.evidence(ProgramIndex{p}, end->second));
      drafts.push_back(std::move(draft));
    }
  }
}

/// One communicator, one thread at a time: NCCL's user guide, thread safety.
void add_thread_drafts(const Describer& describe, std::vector<Draft>& drafts) {
  std::map<CommIndex, std::vector<OperationRef>> by_comm;
  for (const OperationRef& call : describe.match().noteworthy) {
    const Operation& operation = describe.operation(call.program, call.operation);
    if ((operation.flags & kOpThreadUnsafe) != 0 && operation.comm != kNoComm) by_comm[operation.comm].push_back(call);
  }
  for (const auto& [comm, calls] : by_comm) {
    Draft draft{.finding = {.verdict = Verdict::kOrder, .finding_class = "threads_share_communicator",
                            .severity = Severity::kContractViolation}};
    place(describe, comm, calls.front().program, calls.front().operation, draft);
    std::set<std::int32_t> ranks;
    for (const OperationRef& call : calls) ranks.insert(describe.job().program(call.program).rank);
    draft.finding.divergent_ranks.assign(ranks.begin(), ranks.end());
    draft.finding.divergent_meaning = DivergentMeaning::kMinority;
    draft.finding.title = fmt::format("two threads use {} at once on {}", describe.communicator(comm),
                                      ranks_text(draft.finding.divergent_ranks));
    draft.finding.explanation = draft.finding.title + "; which of their calls comes first is chance, and may differ between ranks";
    draft.finding.fix = "give each thread a communicator of its own, or let one thread issue all calls";
    drafts.push_back(std::move(draft));
  }
}

}  // namespace

std::optional<std::uint32_t> call_at(const Describer& describe, ProgramIndex program, CommIndex comm, std::uint32_t seq) {
  if (program == kNoProgram) return std::nullopt;
  const auto& operations = describe.job().program(program).operations;
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    if (operations[i].comm == comm && operations[i].seq == seq && is_placed_collective(operations[i])) return i;
  }
  return std::nullopt;
}

std::vector<std::int32_t> common_ranks(const std::vector<VectorDifference>& pairs) {
  std::map<std::int32_t, std::size_t> times;
  for (const VectorDifference& pair : pairs) {
    ++times[pair.sender];
    if (pair.sender != pair.receiver) ++times[pair.receiver];
  }
  std::set<std::pair<std::int32_t, std::int32_t>> links;
  for (const VectorDifference& pair : pairs) links.insert(std::minmax(pair.sender, pair.receiver));
  std::vector<std::int32_t> all;
  std::vector<std::int32_t> in_every;
  for (const auto& [rank, count] : times) {
    all.push_back(rank);
    if (count == pairs.size()) in_every.push_back(rank);
  }
  return links.size() > 1 && !in_every.empty() ? in_every : all;
}

std::vector<Draft> rule_drafts(const Describer& describe) {
  std::vector<Draft> drafts;
  for (std::uint32_t c = 0; c < describe.match().communicators.size(); ++c) {
    const CommunicatorMatch& communicator = describe.match().communicators[c];
    // Past a difference of the calls themselves, positions mean nothing.
    const auto comes_first = [&](std::uint32_t seq) {
      return communicator.agreed || !communicator.first_difference || seq <= *communicator.first_difference;
    };
    if (!communicator.vector_differences.empty() && comes_first(communicator.vector_differences.front().seq)) {
      drafts.push_back(vector_draft(describe, CommIndex{c}, communicator.vector_differences));
    }
    if (communicator.partition_difference && comes_first(*communicator.partition_difference)) {
      drafts.push_back(partition_draft(describe, CommIndex{c}, *communicator.partition_difference));
    }
  }
  add_init_drafts(describe, drafts);
  add_used_after_end(describe, drafts);
  add_thread_drafts(describe, drafts);
  for (Draft& draft : shrink_drafts(describe)) drafts.push_back(std::move(draft));
  return drafts;
}

}  // namespace lockstep
