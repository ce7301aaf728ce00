// See the header. A call's precedent is the longest run of calls that it followed before and would follow now.
#include "diagnose/departure.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/rank_ranges.h"
#include "diagnose/call_counts.h"
#include "diagnose/collective_findings.h"
#include "match/signature.h"

namespace lockstep {
namespace {

struct Token {
  std::uint64_t signature = 0;
  CommIndex comm = kNoComm;
  SiteIndex site{};
  friend bool operator==(const Token&, const Token&) = default;
};

struct Path {
  std::vector<Token> tokens{};
  std::vector<std::uint32_t> operations{};
};

/// More calls than this tell nothing new about what follows what.
constexpr std::size_t kMostCalls = 1 << 16;
constexpr std::size_t kLongestContext = 256;

Token token_of(const Job& job, const Operation& operation) {
  return {signature(job, operation), operation.comm, operation.site};
}

/// The calls of a rank, before the one it stands in, on the groups that the other rank is a member of, too.
Path shared_path(const Describer& describe, const StandingCall& standing, const std::vector<bool>& is_shared) {
  Path path;
  const auto& operations = describe.job().program(standing.program).operations;
  for (std::uint32_t i = standing.operation; i-- > 0 && path.tokens.size() < kMostCalls;) {
    const Operation& operation = operations[i];
    if (!is_placed_collective(operation) || operation.comm == kNoComm || !is_shared[to_size(operation.comm)]) continue;
    path.tokens.push_back(token_of(describe.job(), operation));
    path.operations.push_back(i);
  }
  std::ranges::reverse(path.tokens);
  std::ranges::reverse(path.operations);
  return path;
}

/// Length of the longest run of calls at the end of `path` behind which `next` came before; 0 = it never followed the last call.
std::size_t precedent(const std::vector<Token>& path, const Token& next) {
  std::size_t longest = 0;
  for (std::size_t at = 1; at < path.size(); ++at) {
    if (path[at] != next) continue;
    std::size_t run = 0;
    while (run < at && run < kLongestContext && path[at - 1 - run] == path[path.size() - 1 - run]) ++run;
    longest = std::max(longest, run);
  }
  return longest;
}

std::vector<bool> shared_communicators(const Job& job, ProgramIndex a, ProgramIndex b) {
  std::vector<bool> shared;
  for (const Communicator& communicator : job.communicators()) {
    const auto has = [&](ProgramIndex program) {
      return std::ranges::find(communicator.members, job.program(program).rank) != communicator.members.end();
    };
    shared.push_back(has(a) && has(b));
  }
  return shared;
}

/// Both came to the same place: as far as both records reach back, their calls are equal.
bool have_same_end(const Path& a, const Path& b) {
  const std::size_t common = std::min(a.tokens.size(), b.tokens.size());
  return common > 0 && std::equal(a.tokens.end() - static_cast<std::ptrdiff_t>(common), a.tokens.end(),
                                  b.tokens.end() - static_cast<std::ptrdiff_t>(common));
}

}  // namespace

std::optional<Departure> find_departure(const Describer& describe, const StandingCall& a, const StandingCall& b) {
  const Job& job = describe.job();
  if (a.program == b.program || a.program == kNoProgram || b.program == kNoProgram) return std::nullopt;
  const std::vector<bool> is_shared = shared_communicators(job, a.program, b.program);
  const auto is_shared_call = [&](const StandingCall& standing) {
    const Operation& operation = describe.operation(standing.program, standing.operation);
    return is_placed_collective(operation) && operation.comm != kNoComm && is_shared[to_size(operation.comm)];
  };
  if (!is_shared_call(a) || !is_shared_call(b)) return std::nullopt;
  Path path_of_a = shared_path(describe, a, is_shared);
  Path path_of_b = shared_path(describe, b, is_shared);
  if (!have_same_end(path_of_a, path_of_b)) return std::nullopt;
  std::vector<Token>& path = path_of_a.tokens.size() > path_of_b.tokens.size() ? path_of_a.tokens : path_of_b.tokens;

  const Token next_of_a = token_of(job, describe.operation(a.program, a.operation));
  const Token next_of_b = token_of(job, describe.operation(b.program, b.operation));
  const std::size_t precedent_of_a = precedent(path, next_of_a);
  const std::size_t precedent_of_b = precedent(path, next_of_b);
  if (precedent_of_a == precedent_of_b) return std::nullopt;
  const bool a_departs = precedent_of_a < precedent_of_b;
  const StandingCall& departing = a_departs ? a : b;
  const StandingCall& keeping = a_departs ? b : a;
  const Token& unusual = a_departs ? next_of_a : next_of_b;
  const Token& usual = a_departs ? next_of_b : next_of_a;
  Departure departure{.usual = keeping.operation,
                      .before = (a_departs ? path_of_b : path_of_a).operations.back()};
  // A loop that is known to repeat this call runs once more. Any other call that is known to come behind the usual one: that was
  // left out.
  const bool repeats = unusual == path.back() && std::min(precedent_of_a, precedent_of_b) > 0;
  path.push_back(usual);
  departure.added = repeats || precedent(path, unusual) == 0;
  departure.call = departure.added ? departing : keeping;
  departure.without = departure.added ? keeping.program : departing.program;
  return departure;
}

DepartureWords departure_words(const Describer& describe, const Departure& departure, std::span<const std::int32_t> callers,
                               std::span<const std::int32_t> others) {
  const Job& job = describe.job();
  const ProgramIndex keeping = departure.added ? departure.without : departure.call.program;
  const Operation& call = describe.operation(departure.call.program, departure.call.operation);
  const auto told = [&](const Operation& operation) {
    return fmt::format("{} on {}{}", op_name(operation.kind), job.communicator(operation.comm).name, describe.from_site(operation));
  };
  const auto goes_on = [&] {
    return fmt::format("{} {} on without it", ranks_text(others), others.size() == 1 ? "goes" : "go");
  };
  const auto make_it = [&] { return fmt::format("{} make{} {}", ranks_text(callers), callers.size() == 1 ? "s" : "", told(call)); };
  const std::string usual = fmt::format("so far {} was followed by {}", told(describe.operation(keeping, departure.before)),
                                        told(describe.operation(keeping, departure.usual)));
  if (!departure.added) return {"call_skipped", fmt::format("{}, and {}: left out, or to be made later", usual, goes_on())};
  const std::uint32_t made = count_like(describe, departure.call.program, call.comm, departure.call.program, departure.call.operation);
  const std::uint32_t made_without = count_like(describe, departure.without, call.comm, departure.call.program, departure.call.operation);
  if (made_without > 0) {
    return {"count_differs_by_local_state",
            fmt::format("{}, and {} once more before it: the same line runs {} on rank {} and {} on rank {}", usual, make_it(), times_text(made),
                        job.program(departure.call.program).rank, times_text(made_without), job.program(departure.without).rank)};
  }
  if (callers.size() > others.size()) return {"call_skipped", fmt::format("{}, and {}", make_it(), goes_on())};
  return {"rank_gated_call", fmt::format("{}, and {} in between: it stands behind a condition that is not true on {}", usual, make_it(),
                                         ranks_text(others))};
}

void explain_departure(const Describer& describe, const Departure& departure, std::span<const std::int32_t> callers,
                       std::span<const std::int32_t> others, Finding& finding) {
  const CommIndex comm = describe.operation(departure.call.program, departure.call.operation).comm;
  const DepartureWords words = departure_words(describe, departure, callers, others);
  CallCounts counts = communicator_counts(describe, comm);
  const std::int32_t more = describe.job().program(departure.call.program).rank;
  const std::int32_t fewer = describe.job().program(departure.without).rank;
  finding.finding_class = words.finding_class;
  finding.explanation = fmt::format("calls on {} differ: rank {} makes {}, rank {} makes {}; {}", describe.communicator(comm), more,
                                    counts.by_rank[more], fewer, counts.by_rank[fewer], words.text);
  finding.fix = fix_of_imbalance(finding.finding_class);
  finding.counts.push_back(std::move(counts));
  for (CallCounts& site : differing_site_counts(describe, comm, departure.call.program, departure.without)) {
    finding.counts.push_back(std::move(site));
  }
}

}  // namespace lockstep
