// See the header.
#include "diagnose/exchange_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/rank_ranges.h"

namespace lockstep {
namespace {

struct Exchange {
  std::uint64_t sent = 0, received = 0;
  std::size_t members = 0;
  bool uneven = false;
  ProgramIndex program = kNoProgram;  ///< the first member
  std::uint32_t operation = 0;
};

bool is_exchange(const Operation& operation) {
  return (operation.kind == OpKind::kAllToAllV || operation.kind == OpKind::kAllToAll) && operation.comm != kNoComm && operation.count.is_number();
}

}  // namespace

std::vector<Draft> exchange_drafts(const Describer& describe) {
  const Job& job = describe.job();
  std::vector<bool> wanted(job.communicators().size(), false);
  bool any = false;
  for (const Program& program : job.programs()) {
    for (const Operation& operation : program.placed_operations()) {
      if (operation.extra == 0 || !is_exchange(operation) || !job.extra(operation).received) continue;
      any = wanted[to_size(operation.comm)] = true;
    }
  }
  std::vector<Draft> drafts;
  if (!any) return drafts;
  std::map<std::pair<CommIndex, std::uint32_t>, Exchange> exchanges;
  for (std::uint32_t p = 0; p < job.programs().size(); ++p) {
    const auto operations = job.programs()[p].placed_operations();
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      const Operation& operation = operations[i];
      if (!is_exchange(operation) || !wanted[to_size(operation.comm)]) continue;
      Exchange& exchange = exchanges[{operation.comm, operation.seq}];
      if (exchange.members++ == 0) {
        exchange.program = ProgramIndex{p};
        exchange.operation = i;
      }
      const auto received = job.extra(operation).received;
      exchange.uneven = exchange.uneven || received.has_value();
      exchange.sent += operation.count.number();
      exchange.received += received.value_or(operation.count.number());
    }
  }
  std::vector<bool> told(job.communicators().size(), false);
  for (const auto& [place, exchange] : exchanges) {
    const auto& [comm, seq] = place;
    const auto& members = job.communicator(comm).members;
    if (!exchange.uneven || exchange.sent == exchange.received || exchange.members != members.size() || told[to_size(comm)]) continue;
    told[to_size(comm)] = true;
    Finding finding{.verdict = Verdict::kMismatch, .finding_class = "size_differs", .severity = Severity::kCertain};
    const bool less = exchange.received < exchange.sent;
    const std::uint64_t difference = less ? exchange.sent - exchange.received : exchange.received - exchange.sent;
    finding.title = fmt::format("the members of {} send {} elements in {} #{} and expect {}", describe.communicator(comm), exchange.sent,
                                op_name(describe.operation(exchange.program, exchange.operation).kind), seq, exchange.received);
    finding.explanation = fmt::format("{}: {} {} than sent; some pair of ranks does not agree on how much passes between them, and the record "
                                      "holds no split sizes to tell which",
                                      finding.title, difference, less ? "fewer" : "more");
    finding.fix = "exchange the split sizes first (an all_to_all of counts), and use what arrives as output splits; print both on every rank";
    finding.communicator = describe.communicator_view(comm);
    finding.position = describe.position(exchange.program, exchange.operation);
    finding.divergent_ranks = members;
    std::ranges::sort(finding.divergent_ranks);
    finding.divergent_meaning = DivergentMeaning::kNoMajority;
    finding.operations = {describe.view(exchange.program, exchange.operation)};
    finding.evidence = {describe.evidence(exchange.program, exchange.operation)};
    drafts.push_back({.finding = std::move(finding), .comm = comm, .stalls = true, .first_call = exchange.operation});
  }
  return drafts;
}

}  // namespace lockstep
