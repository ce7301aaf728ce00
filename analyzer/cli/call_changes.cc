// Differences in calls per communicator.
#include "cli/call_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/rank_ranges.h"
#include "lockstep/op_kind.h"
#include "report/printable.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostLines = 20;
constexpr std::size_t kMostValues = 4;  // of one line
constexpr std::size_t kRanksWidth = 40;

using ByRank = std::map<std::int32_t, std::uint64_t>;

const ByRank& of_iteration(const CallTotals::ByIteration& totals, const std::string& iteration) {
  static const ByRank none;
  const auto found = totals.find(iteration);
  return found == totals.end() ? none : found->second;
}

std::set<std::string> iterations_of(const CallTotals& totals) {
  std::set<std::string> names;
  for (const auto& [key, by_iteration] : totals.calls())
    for (const auto& [iteration, by_rank] : by_iteration) names.insert(iteration);
  return names;
}

/// A side without any call is compared with all that the other has.
std::vector<std::string> common_iterations(const CallTotals& before, const CallTotals& after) {
  const auto left = iterations_of(before);
  const auto right = iterations_of(after);
  if (left.empty()) return {right.begin(), right.end()};
  if (right.empty()) return {left.begin(), left.end()};
  std::vector<std::string> common;
  std::ranges::set_intersection(left, right, std::back_inserter(common));
  return common;
}

/// "3 on every rank", "2 on ranks 0-6, none on rank 7"
std::string counts_text(const ByRank& counts, const std::vector<std::int32_t>& members) {
  std::map<std::uint64_t, std::vector<std::int32_t>, std::greater<>> ranks;
  std::vector<std::int32_t> sorted = members;
  std::ranges::sort(sorted);
  for (const std::int32_t rank : sorted) {
    const auto found = counts.find(rank);
    ranks[found == counts.end() ? 0 : found->second].push_back(rank);
  }
  const auto number = [](std::uint64_t count) { return count == 0 ? std::string("none") : std::to_string(count); };
  if (ranks.empty()) return "none";
  if (ranks.size() == 1) return number(ranks.begin()->first) + (ranks.begin()->first == 0 ? "" : " on every rank");
  std::vector<std::string> parts;
  for (const auto& [count, on] : ranks) {
    if (parts.size() == kMostValues) {
      parts.push_back(fmt::format("{} more values", ranks.size() - kMostValues));
      break;
    }
    parts.push_back(fmt::format("{} on {}", number(count), named_ranks(on, kRanksWidth)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

nlohmann::ordered_json counts_json(const ByRank& counts) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [rank, count] : counts) json[std::to_string(rank)] = count;
  return json;
}

/// How often a program makes each kind of call on each communicator, in the order in which it first does.
class ProgramCalls {
 public:
  explicit ProgramCalls(const Job& job) : counts_(job.communicators().size() * kKinds) {}

  /// `take` is called as take(communicator, kind, count).
  template <class Take>
  void each(const Program& program, const Take& take) {
    for (const Operation& operation : program.operations) {
      if (operation.comm == kNoComm) continue;
      const std::size_t place = to_size(operation.comm) * kKinds + static_cast<std::size_t>(operation.kind);
      if (counts_[place]++ == 0) used_.push_back(place);
    }
    for (const std::size_t place : used_) {
      take(CommIndex{static_cast<std::uint32_t>(place / kKinds)}, static_cast<OpKind>(place % kKinds), counts_[place]);
      counts_[place] = 0;
    }
    used_.clear();
  }

 private:
  static constexpr std::size_t kKinds = 256;  // OpKind is one byte
  std::vector<std::uint64_t> counts_;
  std::vector<std::size_t> used_{};
};

}  // namespace

void CallTotals::add(const Job& job, std::string_view iteration) {
  ProgramCalls calls(job);
  for (const Program& program : job.programs()) {
    calls.each(program, [&](CommIndex comm, OpKind kind, std::uint64_t count) {
      const Communicator& communicator = job.communicator(comm);
      auto& by_iteration = calls_[{communicator.name, communicator.members, std::string(op_name(kind))}];
      by_iteration[std::string(iteration)][program.rank] += count;
    });
  }
}

void CallTotals::add(const plan::Expansion& expansion, std::string_view iteration) {
  if (!expansion.alike) return add(expansion.job, iteration);
  of_alike_ranks_ = true;
  // Communicators of a plan are named by their family; a rank is in at most one group of each.
  struct Calls {
    std::int32_t image = 0;
    OpKind kind{};
    std::uint64_t count = 0;
    auto operator<=>(const Calls&) const = default;
  };
  std::map<std::string_view, std::vector<Calls>> by_family;  // sorted by image: programs are in order of ranks
  ProgramCalls calls(expansion.job);
  for (const Program& program : expansion.job.programs()) {
    calls.each(program, [&](CommIndex comm, OpKind kind, std::uint64_t count) {
      by_family[expansion.job.communicator(comm).name].push_back({program.rank, kind, count});
    });
  }
  for (const auto& [family, made] : by_family) {
    for (const plan::RankList& group : expansion.layout.families.find(family)->second.groups) {
      std::map<OpKind, std::map<std::int32_t, std::uint64_t>*> counts;  // of this group
      for (const std::int32_t rank : group) {
        for (const Calls& call : std::ranges::equal_range(made, expansion.alike->image_of(rank), {}, &Calls::image)) {
          auto& by_rank = counts[call.kind];
          if (by_rank == nullptr) {
            by_rank = &calls_[{std::string(family), group, std::string(op_name(call.kind))}][std::string(iteration)];
          }
          (*by_rank)[rank] += call.count;
        }
      }
    }
  }
}

std::optional<std::vector<CallChange>> call_changes(const CallTotals& before, const CallTotals& after) {
  static const CallTotals::ByIteration none;
  const std::vector<std::string> iterations = common_iterations(before, after);
  if (iterations.empty() && !before.calls().empty()) return std::nullopt;
  std::set<CallTotals::Key> keys;
  for (const CallTotals* totals : {&before, &after})
    for (const auto& [key, by_iteration] : totals->calls()) keys.insert(key);
  std::vector<CallChange> changes;
  for (const CallTotals::Key& key : keys) {
    const auto old_calls = before.calls().find(key);
    const auto new_calls = after.calls().find(key);
    const std::size_t first = changes.size();
    for (const std::string& iteration : iterations) {
      const ByRank& old = of_iteration(old_calls == before.calls().end() ? none : old_calls->second, iteration);
      const ByRank& now = of_iteration(new_calls == after.calls().end() ? none : new_calls->second, iteration);
      if (old == now) continue;
      const auto alike = std::find_if(
          changes.begin() + static_cast<std::ptrdiff_t>(first), changes.end(),
          [&](const CallChange& change) { return change.before == old && change.after == now; });
      CallChange& change =
          alike != changes.end() ? *alike : changes.emplace_back(CallChange{key, {}, old, now});
      if (!iteration.empty()) change.iterations.push_back(iteration);
    }
  }
  return changes;
}

std::string call_changes_text(const std::vector<CallChange>& changes) {
  if (changes.empty()) return "changes none: each rank makes as many calls of each kind on each communicator as in the base\n";
  std::string text;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::string_view label = i == 0 ? "changes" : "       ";
    if (i == kMostLines) {
      text += fmt::format("{} and {} more; --format json has them all\n", label, changes.size() - i);
      break;
    }
    const CallChange& change = changes[i];
    std::string when;
    if (!change.iterations.empty()) when = fmt::format(" ({} iteration)", fmt::join(change.iterations, ", "));
    text += fmt::format("{} {} on {} [{}]: {}; in the base {}{}\n", label, change.calls.op,
                        printable(change.calls.communicator), rank_ranges(change.calls.members, kRanksWidth),
                        counts_text(change.after, change.calls.members),
                        counts_text(change.before, change.calls.members), when);
  }
  return text;
}

nlohmann::ordered_json call_changes_json(const std::vector<CallChange>& changes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const CallChange& change : changes) {
    nlohmann::ordered_json entry{{"communicator", change.calls.communicator},
                                 {"ranks", change.calls.members},
                                 {"op", change.calls.op}};
    if (!change.iterations.empty()) entry["iterations"] = change.iterations;
    entry["before"] = counts_json(change.before);
    entry["after"] = counts_json(change.after);
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace lockstep
