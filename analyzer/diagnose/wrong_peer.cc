// See the header.
#include "diagnose/wrong_peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

struct UnmetMessage {
  ProgramIndex program = kNoProgram;
  std::uint32_t operation = 0;
};

/// More in one cycle say that a schedule is wrong, not one peer.
constexpr std::size_t kMostMessages = 64;

std::vector<UnmetMessage> unmet_messages(const Describer& describe, const ReplayResult& replay, const Cause& cause) {
  std::vector<UnmetMessage> unmet;
  for (const BlockedOperation& blocked : replay.blocked) {
    if (!std::ranges::binary_search(cause.stuck, blocked.stuck)) continue;
    const Operation& operation = describe.operation(blocked.program, blocked.operation);
    if (!is_placed_message(operation) || operation.peer < 0) continue;
    if (!std::ranges::binary_search(replay.stuck[blocked.stuck].never, operation.peer)) continue;
    unmet.push_back({blocked.program, blocked.operation});
  }
  return unmet;
}

/// `theirs` is a message with the rank of `own`, of which `own` could be the other side but for its peer.
bool fit_but_for_the_peer(const Job& job, const Operation& own, std::int32_t own_rank, const Operation& theirs, std::int32_t their_rank) {
  return theirs.peer == own_rank && own.peer != their_rank && is_send(own.kind) != is_send(theirs.kind) && own.comm == theirs.comm &&
         own.tag == theirs.tag && own.count == theirs.count && job.datatype(own.datatype) == job.datatype(theirs.datatype);
}

}  // namespace

std::optional<WrongPeer> find_wrong_peer(const Describer& describe, const ReplayResult& replay, const Cause& cause) {
  const Job& job = describe.job();
  const std::vector<UnmetMessage> unmet = unmet_messages(describe, replay, cause);
  if (unmet.size() > kMostMessages) return std::nullopt;
  std::optional<WrongPeer> found;
  for (const UnmetMessage& own : unmet) {
    for (const UnmetMessage& theirs : unmet) {
      const bool fits = fit_but_for_the_peer(job, describe.operation(own.program, own.operation), job.program(own.program).rank,
                                             describe.operation(theirs.program, theirs.operation), job.program(theirs.program).rank);
      if (!fits) continue;
      if (found) return std::nullopt;
      found = {.program = own.program, .operation = own.operation, .waiting = theirs.program};
    }
  }
  return found;
}

void explain_wrong_peer(const Describer& describe, const WrongPeer& wrong, Finding& finding) {
  const Operation& call = describe.operation(wrong.program, wrong.operation);
  const std::int32_t rank = describe.job().program(wrong.program).rank;
  const std::int32_t waiting = describe.job().program(wrong.waiting).rank;
  const bool sends = is_send(call.kind);
  finding.finding_class = "message_unmatched";
  finding.explanation = fmt::format(
      "rank {} {} rank {}{}, which {} nothing {} rank {} there; rank {} {} rank {}: as far as the records go, rank {} has the wrong peer", rank,
      sends ? "sends to" : "receives from", call.peer, describe.from_site(call), sends ? "receives" : "sends", sends ? "from" : "to", rank,
      waiting, sends ? "waits for a message from" : "sends to", rank, rank);
  finding.fix = fmt::format("check how rank {} computes its peer at this call", rank);
  finding.divergent_ranks = {rank};
  finding.divergent_meaning = DivergentMeaning::kMinority;
}

}  // namespace lockstep
