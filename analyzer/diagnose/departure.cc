// See the header. A call's precedent is the longest run of calls that it followed before and would follow now.
#include "diagnose/departure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/rank_ranges.h"
#include "diagnose/call_counts.h"
#include "diagnose/collective_findings.h"
#include "match/signature.h"

namespace lockstep {
namespace {

/// What two ranks see alike: a collective with its place in the program, a message without, for it has one on either side.
struct Token {
  std::uint64_t signature = 0;  ///< of a message: its tag
  CommIndex comm = kNoComm;
  SiteIndex site{};
  std::int32_t sender = kNoPeer, receiver = kNoPeer;
  friend bool operator==(const Token&, const Token&) = default;
};

struct Path {
  std::vector<Token> tokens{};
  std::vector<std::uint32_t> operations{};
};

/// More calls than this tell nothing new about what follows what.
constexpr std::size_t kMostCalls = 1 << 16;
constexpr std::size_t kLongestContext = 256;

/// Reads the programs of two ranks for the calls that both have a part in.
class SharedCalls {
 public:
  SharedCalls(const Job& job, ProgramIndex a, ProgramIndex b) : job_(job), ranks_{job.program(a).rank, job.program(b).rank} {
    for (const Communicator& communicator : job.communicators()) {
      const auto has = [&](std::int32_t rank) { return std::ranges::find(communicator.members, rank) != communicator.members.end(); };
      is_shared_.push_back(has(ranks_[0]) && has(ranks_[1]));
    }
  }

  std::optional<Token> token(ProgramIndex program, std::uint32_t index) const {
    const Operation& operation = job_.program(program).operations[index];
    if (is_placed_collective(operation)) {
      if (!is_shared_[to_size(operation.comm)]) return std::nullopt;
      return Token{.signature = signature(job_, operation), .comm = operation.comm, .site = operation.site};
    }
    const std::int32_t rank = job_.program(program).rank;
    const bool between_them = operation.peer != rank && (operation.peer == ranks_[0] || operation.peer == ranks_[1]);
    if (!is_placed_message(operation) || !between_them || operation.tag == kAnyTag) return std::nullopt;
    const bool sends = is_send(operation.kind);
    return Token{.signature = operation.tag,
                 .comm = operation.comm,
                 .sender = sends ? rank : operation.peer,
                 .receiver = sends ? operation.peer : rank};
  }

  /// The calls of a rank before the one it stands in.
  Path path_to(const StandingCall& standing) const {
    Path path;
    for (std::uint32_t i = standing.operation; i-- > 0 && path.tokens.size() < kMostCalls;) {
      const auto next = token(standing.program, i);
      if (!next) continue;
      path.tokens.push_back(*next);
      path.operations.push_back(i);
    }
    std::ranges::reverse(path.tokens);
    std::ranges::reverse(path.operations);
    return path;
  }

 private:
  const Job& job_;
  std::array<std::int32_t, 2> ranks_;
  std::vector<bool> is_shared_;
};

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

/// Both came to the same place: as far as both records reach back, their calls are equal.
bool have_same_end(const Path& a, const Path& b) {
  const std::size_t common = std::min(a.tokens.size(), b.tokens.size());
  return common > 0 && std::equal(a.tokens.end() - static_cast<std::ptrdiff_t>(common), a.tokens.end(),
                                  b.tokens.end() - static_cast<std::ptrdiff_t>(common));
}

}  // namespace

std::optional<Departure> find_departure(const Describer& describe, const StandingCall& a, const StandingCall& b) {
  if (a.program == b.program || a.program == kNoProgram || b.program == kNoProgram) return std::nullopt;
  const SharedCalls shared(describe.job(), a.program, b.program);
  const auto next_of_a = shared.token(a.program, a.operation);
  const auto next_of_b = shared.token(b.program, b.operation);
  if (!next_of_a || !next_of_b) return std::nullopt;
  const Path path_of_a = shared.path_to(a);
  const Path path_of_b = shared.path_to(b);
  if (path_of_a.tokens.empty() || path_of_b.tokens.empty()) return std::nullopt;
  // Messages that cross stand in another order on either side. Collectives do not.
  const bool of_messages = next_of_a->sender != kNoPeer || next_of_b->sender != kNoPeer;
  if (!of_messages && !have_same_end(path_of_a, path_of_b)) return std::nullopt;

  // How much better its own call fits what a rank did before than the other's: below 0, it left its path.
  const auto fit = [](const Path& path, const Token& own, const Token& other) {
    return static_cast<std::int64_t>(precedent(path.tokens, own)) - static_cast<std::int64_t>(precedent(path.tokens, other));
  };
  const std::int64_t fit_of_a = fit(path_of_a, *next_of_a, *next_of_b);
  const std::int64_t fit_of_b = fit(path_of_b, *next_of_b, *next_of_a);
  // A line of the program behind another line is a habit when seen once; calls without a place agree by chance.
  const bool have_places = next_of_a->site != SiteIndex{} && next_of_b->site != SiteIndex{};
  constexpr std::int64_t kByChance = 2;
  if ((fit_of_a < 0) == (fit_of_b < 0) || (!have_places && std::min(fit_of_a, fit_of_b) >= -kByChance)) return std::nullopt;
  const bool a_departs = fit_of_a < 0;
  const StandingCall& departing = a_departs ? a : b;
  const StandingCall& keeping = a_departs ? b : a;
  const Token& unusual = a_departs ? *next_of_a : *next_of_b;
  const Token& usual = a_departs ? *next_of_b : *next_of_a;
  std::vector<Token> path = (a_departs ? path_of_a : path_of_b).tokens;
  Departure departure{.usual = keeping.operation, .before = (a_departs ? path_of_b : path_of_a).operations.back()};
  // A loop that is known to repeat this call runs once more. Any other call that is known to come behind the usual one: that was
  // left out.
  const bool repeats = unusual == path.back() && precedent(path, unusual) > 0;
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
  const auto told = [&](const Operation& operation, const std::string& from) {
    const std::string peer = !is_point_to_point(operation.kind)
                                 ? ""
                                 : fmt::format(" {} rank {}", is_send(operation.kind) ? "to" : "from", operation.peer);
    const std::string on = operation.comm == kNoComm ? "" : " on " + job.communicator(operation.comm).name;
    return fmt::format("{}{}{}{}", op_name(operation.kind), peer, on, from);
  };
  const auto goes_on = [&] {
    return fmt::format("{} {} on without it", ranks_text(others), others.size() == 1 ? "goes" : "go");
  };
  const auto make_it = [&] { return fmt::format("{} make{} {}", ranks_text(callers), callers.size() == 1 ? "s" : "", told(call, describe.from_site(call))); };
  const auto told_shortly = [&](std::uint32_t operation) {
    const Operation& habit = describe.operation(keeping, operation);
    return told(habit, describe.from_short_site(habit));
  };
  const std::string usual = fmt::format("so far {} was followed by {}", told_shortly(departure.before), told_shortly(departure.usual));
  if (is_point_to_point(call.kind)) {
    const std::string_view missing = is_send(call.kind) ? "the recv" : "the send";
    return {"message_unmatched", departure.added ? fmt::format("{}, and {} in between, without {} of {}", usual, make_it(), missing,
                                                               ranks_text(others))
                                                 : fmt::format("{}, and {} on without {}: left out, or to be made later", usual,
                                                               others.size() == 1 ? ranks_text(others) + " goes" : ranks_text(others) + " go",
                                                               missing)};
  }
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
  const Operation& call = describe.operation(departure.call.program, departure.call.operation);
  const CommIndex comm = call.comm;
  const DepartureWords words = departure_words(describe, departure, callers, others);
  const std::int32_t more = describe.job().program(departure.call.program).rank;
  const std::int32_t fewer = describe.job().program(departure.without).rank;
  if (is_point_to_point(call.kind)) {
    finding.finding_class = words.finding_class;
    finding.explanation =
        fmt::format("{}{} finds no partner; {}", describe.call(departure.call.program, departure.call.operation), describe.from_site(call), words.text);
    finding.fix = fmt::format("rank {} and rank {} must decide from the same facts whether this message is sent", more, fewer);
    return;
  }
  CallCounts counts = communicator_counts(describe, comm);
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
