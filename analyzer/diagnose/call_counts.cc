// See the header. Only called for the communicators of a finding.
#include "diagnose/call_counts.h"

#include <algorithm>
#include <map>

namespace lockstep {
namespace {

bool is_like(const Job& job, const Operation& a, const Operation& b) {
  if (a.site != SiteIndex{} && b.site != SiteIndex{}) return a.site == b.site && a.kind == b.kind;
  return signature(job, a) == signature(job, b);
}

bool is_call_on(const Operation& operation, CommIndex comm) {
  return operation.comm == comm && is_placed_collective(operation);
}

}  // namespace

CallCounts communicator_counts(const Describer& describe, CommIndex comm) {
  const Communicator& communicator = describe.job().communicator(comm);
  CallCounts counts{.communicator = communicator.name, .members = communicator.members};
  for (const MemberCalls& member : describe.match().communicators[to_size(comm)].members) {
    counts.by_rank[describe.job().program(member.program).rank] = member.count;
  }
  return counts;
}

std::uint32_t count_like(const Describer& describe, ProgramIndex program, CommIndex comm, ProgramIndex like_program,
                         std::uint32_t like) {
  const Operation& model = describe.operation(like_program, like);
  const auto& operations = describe.job().program(program).operations;
  return static_cast<std::uint32_t>(std::ranges::count_if(operations, [&](const Operation& operation) {
    return is_call_on(operation, comm) && is_like(describe.job(), operation, model);
  }));
}

std::vector<CallCounts> differing_site_counts(const Describer& describe, CommIndex comm, ProgramIndex a,
                                              ProgramIndex b) {
  const Job& job = describe.job();
  std::map<std::string, std::map<std::int32_t, std::uint64_t>> by_site;
  for (const ProgramIndex program : {a, b}) {
    for (const Operation& operation : job.program(program).operations) {
      if (!is_call_on(operation, comm) || operation.site == SiteIndex{}) continue;
      auto& counts = by_site[describe.site(operation.site)];
      counts.try_emplace(job.program(a).rank, 0);
      counts.try_emplace(job.program(b).rank, 0);
      ++counts[job.program(program).rank];
    }
  }
  std::vector<CallCounts> differing;
  for (auto& [site, by_rank] : by_site) {
    if (by_rank[job.program(a).rank] == by_rank[job.program(b).rank]) continue;
    differing.push_back({.communicator = job.communicator(comm).name,
                         .members = job.communicator(comm).members,
                         .call_site = site,
                         .by_rank = by_rank});
  }
  return differing;
}

std::optional<LoopWitness> find_loop_witness(const Describer& describe, ProgramIndex a, ProgramIndex b, SiteIndex site,
                                             std::uint32_t count_a, std::uint32_t count_b) {
  const Job& job = describe.job();
  const auto& frames = job.site(site).frames;
  struct Tally {
    std::uint32_t a = 0, b = 0;
    CommIndex comm_a = kNoComm, comm_b = kNoComm;
    OpKind kind = OpKind::kUnknown;
  };
  // The call itself may be wrapped once; a function further out runs too much else.
  const std::size_t depth = std::min<std::size_t>(frames.size(), 2);
  for (std::size_t level = 0; level < depth; ++level) {
    const std::string& function = frames[level].function;
    if (function.empty()) continue;
    std::map<SiteIndex, Tally> tallies;
    const auto tally = [&](ProgramIndex program, std::uint32_t Tally::*count, CommIndex Tally::*comm) {
      for (const Operation& operation : job.program(program).operations) {
        if (operation.site == site || operation.site == SiteIndex{} || !is_collective(operation.kind)) continue;
        const Frame& inner = job.site(operation.site).frames.front();
        if (inner.function != function || inner.file != frames[level].file) continue;
        Tally& entry = tallies[operation.site];
        ++(entry.*count);
        entry.*comm = operation.comm;
        entry.kind = operation.kind;
      }
    };
    tally(a, &Tally::a, &Tally::comm_a);
    tally(b, &Tally::b, &Tally::comm_b);
    for (const auto& [other, entry] : tallies) {
      if (entry.a == count_a && entry.b == count_b) {
        return LoopWitness{other, function, entry.kind, entry.comm_a, entry.comm_b, entry.a, entry.b};
      }
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> gap_to_previous(const Describer& describe, ProgramIndex program, std::uint32_t index) {
  const auto& operations = describe.job().program(program).operations;
  const Operation& model = operations[index];
  for (std::uint32_t before = index; before-- > 0;) {
    if (is_call_on(operations[before], model.comm) && is_like(describe.job(), operations[before], model)) {
      return index - before;
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
