// See the header.
#include "diagnose/shared_hosts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rank_ranges.h"

namespace lockstep {
namespace {

bool share_a_process(const Program& a, const Program& b) {
  return a.place.pid != 0 && a.place.pid == b.place.pid && a.place.host == b.place.host;
}

/// The wait whose thread would issue for all ranks of the cause; null where there is none.
const WaitingHost* waiting_thread(const Describer& describe, const ReplayResult& standstill, const Cause& cause) {
  const Job& job = describe.job();
  for (const WaitingHost& host : standstill.waiting_hosts) {
    const Program& program = job.program(host.program);
    const bool is_victim = std::ranges::binary_search(cause.victims, program.rank);
    const bool drives_them = std::ranges::all_of(cause.ranks, [&](std::int32_t rank) {
      const ProgramIndex other = job.program_of_rank(rank);
      return other != kNoProgram && share_a_process(program, job.program(other));
    });
    const bool alone = job.extra(describe.operation(host.program, host.operation)).thread.empty();
    if (is_victim && drives_them && alone) return &host;
  }
  return nullptr;
}

}  // namespace

bool explain_shared_host(const Describer& describe, const ReplayResult& standstill, const Cause& cause, Finding& finding) {
  if (cause.kind != CauseKind::kStandsElsewhere) return false;
  const WaitingHost* host = waiting_thread(describe, standstill, cause);
  if (host == nullptr) return false;
  const Operation& wait = describe.operation(host->program, host->operation);
  const std::int32_t rank = describe.job().program(host->program).rank;
  const std::string others = ranks_text(cause.ranks);
  finding.verdict = Verdict::kDeadlock;
  finding.finding_class = "shared_host_waits";
  finding.severity = Severity::kContractViolation;  // that no other thread would have issued is inferred
  finding.divergent_ranks.push_back(rank);
  std::ranges::sort(finding.divergent_ranks);
  finding.title = fmt::format("the thread that drives {} waits on rank {} before it has issued for {}", ranks_text(finding.divergent_ranks),
                              rank, others);
  finding.explanation = fmt::format("one process drives {}; its thread stands in {}{} of rank {}, which ends only when {} {} the same call, and "
                                    "that thread is the one to make it",
                                    ranks_text(finding.divergent_ranks), op_name(wait.kind), describe.from_site(wait), rank, others,
                                    cause.ranks.size() == 1 ? "makes" : "make");
  finding.fix = "issue the calls of all devices of a thread in one group (ncclGroupStart, ncclGroupEnd), and wait after it";
  finding.evidence.push_back(describe.evidence(host->program, host->operation));
  return true;
}

}  // namespace lockstep
