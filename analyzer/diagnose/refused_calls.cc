// See the header.
#include "diagnose/refused_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/rank_ranges.h"
#include "diagnose/rule_findings.h"
#include "match/signature.h"

namespace lockstep {
namespace {

bool is_among(const std::vector<std::int32_t>& ranks, std::int32_t rank) { return std::ranges::find(ranks, rank) != ranks.end(); }

/// What the ranks that are not to blame call where the refused call would stand.
const Operation* counterpart(const Describer& describe, const Draft& draft) {
  if (!draft.finding.position) return nullptr;
  for (const MemberCalls& member : describe.match().communicators[to_size(draft.comm)].members) {
    if (is_among(draft.finding.divergent_ranks, describe.job().program(member.program).rank)) continue;
    const auto call = call_at(describe, member.program, draft.comm, draft.finding.position->seq);
    if (call) return &describe.operation(member.program, *call);
  }
  return nullptr;
}

/// The call that the rank made in vain is the one that is missing, with other arguments. A type that is none says nothing.
bool has_other_arguments(const Describer& describe, const Draft& draft, Operation refused) {
  const Operation* theirs = counterpart(describe, draft);
  if (theirs == nullptr || theirs->kind != refused.kind) return false;
  if (datatype_bytes(describe.job().datatype(refused.datatype)) == 0) refused.datatype = theirs->datatype;
  return compare_collective(describe.job(), *theirs, refused) != Difference::kNone;
}

bool is_the_missing_message(const Describer& describe, const Draft& draft, const OperationRef& call) {
  const Operation& operation = describe.operation(call.program, call.operation);
  const std::int32_t rank = describe.job().program(call.program).rank;
  const Draft::Message& message = *draft.message;
  if (!is_point_to_point(operation.kind) || is_send(operation.kind) == message.send_left) return false;
  return message.send_left ? rank == message.receiver && operation.peer == message.sender
                           : rank == message.sender && operation.peer == message.receiver;
}

}  // namespace

bool explain_refused_call(const Describer& describe, Draft& draft) {
  const bool lacks_message = draft.message && draft.message->unmatched;
  if (draft.missing == 0 && !lacks_message) return false;
  Finding& finding = draft.finding;
  for (const OperationRef& call : describe.match().noteworthy) {
    const Operation& operation = describe.operation(call.program, call.operation);
    const std::int32_t rank = describe.job().program(call.program).rank;
    if ((operation.flags & kOpFailed) == 0 || operation.comm != draft.comm || !is_among(finding.divergent_ranks, rank)) continue;
    if (lacks_message ? !is_the_missing_message(describe, draft, call) : !is_collective(operation.kind)) continue;
    finding.finding_class = "call_refused";
    finding.explanation += fmt::format("; rank {} did call {}{}, but the library returned an error, so the call had no effect", rank,
                                       describe.arguments(operation), describe.from_site(operation));
    if (!lacks_message && has_other_arguments(describe, draft, operation)) {
      finding.verdict = Verdict::kMismatch;
      finding.explanation += "; its arguments differ from those of the others";
      finding.fix = fmt::format("give the same arguments on all members (a root is a rank of the communicator), and stop all ranks on an error");
    } else {
      finding.fix = fmt::format("check what the call returns on rank {} and why (NCCL_DEBUG=WARN says it), and stop all ranks on an error",
                                rank);
    }
    if (lacks_message) {
      finding.divergent_ranks = {rank};
      finding.divergent_meaning = DivergentMeaning::kMissing;
    }
    finding.evidence.push_back(describe.evidence(call.program, call.operation));
    return true;
  }
  return false;
}

std::vector<Draft> refused_self_messages(const Describer& describe) {
  std::vector<Draft> drafts;
  std::map<CommIndex, std::size_t> told;  // index into drafts
  for (const OperationRef& call : describe.match().noteworthy) {
    const Operation& operation = describe.operation(call.program, call.operation);
    const std::int32_t rank = describe.job().program(call.program).rank;
    const bool to_itself = is_point_to_point(operation.kind) && operation.peer == rank && operation.comm != kNoComm;
    if ((operation.flags & kOpFailed) == 0 || !to_itself || describe.job().library_of(operation.comm) != Library::kNccl) continue;
    const auto [at, added] = told.try_emplace(operation.comm, drafts.size());
    if (!added) {
      auto& ranks = drafts[at->second].finding.divergent_ranks;
      if (!is_among(ranks, rank)) ranks.push_back(rank);
      continue;
    }
    Draft draft{.finding = {.verdict = Verdict::kMismatch, .finding_class = "self_message_unpaired", .severity = Severity::kCertain},
                .comm = operation.comm};
    Finding& finding = draft.finding;
    draft.first_call = call.operation;
    finding.communicator = describe.communicator_view(operation.comm);
    finding.position = describe.position(call.program, call.operation);
    finding.operations.push_back(describe.view(call.program, call.operation));
    finding.evidence.push_back(describe.evidence(call.program, call.operation));
    finding.divergent_ranks = {rank};
    finding.divergent_meaning = DivergentMeaning::kMinority;
    finding.title = fmt::format("NCCL refused a message of rank {} to itself on {}", rank, describe.communicator(operation.comm));
    finding.explanation = fmt::format("rank {} calls {}{} on {}; a send to the own rank and its receive must stand in one group, else NCCL "
                                      "returns ncclInvalidUsage, and nothing is sent",
                                      rank, describe.arguments(operation), describe.from_site(operation),
                                      describe.communicator(operation.comm));
    finding.fix = "put the send and the receive between ncclGroupStart and ncclGroupEnd, or copy on the device";
    drafts.push_back(std::move(draft));
  }
  for (Draft& draft : drafts) std::ranges::sort(draft.finding.divergent_ranks);
  return drafts;
}

}  // namespace lockstep
