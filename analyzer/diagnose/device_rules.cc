// See the header.
#include "diagnose/device_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace lockstep {
namespace {

/// What the evidence says had completed on the rank when its host came to the wait.
std::string completed_before(const Describer& describe, const WaitingHost& host) {
  for (std::uint32_t i = host.operation; i-- > 0;) {
    const Operation& operation = describe.operation(host.program, i);
    const bool calls = is_placed_collective(operation) || is_placed_message(operation);
    if (calls && operation.state == OpState::kCompleted) {
      return fmt::format(" (the last call known to have completed is {})", describe.call(host.program, i));
    }
  }
  return "";
}

void name_waiting_host(const Describer& describe, const ReplayResult& standstill, const Cause& cause, Finding& finding) {
  for (const WaitingHost& host : standstill.waiting_hosts) {
    const std::int32_t rank = describe.job().program(host.program).rank;
    if (!std::ranges::binary_search(cause.ranks, rank)) continue;
    const Operation& wait = describe.operation(host.program, host.operation);
    finding.explanation += fmt::format("; the host of rank {} stands in {}{}{} and issues nothing more until it returns", rank,
                                       op_name(wait.kind), describe.from_site(wait), completed_before(describe, host));
    return;  // one example tells how it comes about
  }
}

}  // namespace

void describe_device_rules(const Describer& describe, const ReplayResult& standstill, const Cause& cause,
                           std::span<const BlockingModel> models, Finding& finding) {
  name_waiting_host(describe, standstill, cause, finding);
  if (describe.job().library() != Library::kNccl) return;
  const bool of_nccl = std::ranges::any_of(standstill.blocked, [&](const BlockedOperation& blocked) {
    const Operation& operation = describe.operation(blocked.program, blocked.operation);
    return std::ranges::binary_search(cause.stuck, blocked.stuck) && describe.job().library_of(operation.comm) == Library::kNccl;
  });
  if (!of_nccl) return;
  if (cause.ranks.size() == 1 && finding.finding_class == "message_order") {
    finding.finding_class = "self_message_unpaired";
    finding.explanation += "; a send to the own rank and its receive must stand in one group, else NCCL returns ncclInvalidUsage";
    finding.fix = "put the send and the receive between ncclGroupStart and ncclGroupEnd, or copy on the device";
    return;
  }
  const bool eager_ran = std::ranges::find(models, BlockingModel::kEager) != models.end();
  const bool eager_stalls = std::ranges::find(finding.models, "eager") != finding.models.end();
  if (!eager_ran || eager_stalls) return;
  finding.severity = Severity::kContractViolation;
  finding.explanation += "; small messages may pass by NCCL's buffers, larger ones do not";
}

}  // namespace lockstep
