// See the header.
#include "read/flight_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace lockstep {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Ranks that can have written the dump: members of all its groups, and the one that its messages name.
std::optional<std::set<std::int32_t>> candidates(const FlightDump& dump) {
  std::optional<std::set<std::int32_t>> left;
  for (const FlightGroup& group : dump.groups) {
    if (group.members.empty()) continue;
    if (group.self >= 0 && static_cast<std::size_t>(group.self) < group.members.size()) {
      return std::set{group.members[static_cast<std::size_t>(group.self)]};
    }
    std::set<std::int32_t> members(group.members.begin(), group.members.end());
    if (!left) {
      left = std::move(members);
    } else {
      std::erase_if(*left, [&](std::int32_t rank) { return !members.contains(rank); });
    }
  }
  return left;
}

}  // namespace

std::vector<std::int32_t> numbers_of_name(std::string_view path) {
  std::string_view name = path.substr(path.find_last_of('/') + 1);
  // "FILE=RANK": told by the user, and nothing else in the name counts.
  if (const std::size_t equals = name.find_last_of('='); equals != std::string_view::npos && equals + 1 < name.size() && equals > 0 &&
                                                         std::ranges::all_of(name.substr(equals + 1), is_digit)) {
    std::int32_t told = -1;
    const std::string_view digits = name.substr(equals + 1);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), told).ec == std::errc{}) return {told};
  }
  if (const std::size_t dot = name.find_last_of('.'); dot != std::string_view::npos && dot > 0 &&
                                                      !std::ranges::all_of(name.substr(dot + 1), is_digit)) {
    name = name.substr(0, dot);
  }
  std::vector<std::int32_t> named, others;
  for (std::size_t at = name.size(); at > 0;) {
    if (!is_digit(name[at - 1])) {
      --at;
      continue;
    }
    std::size_t from = at;
    while (from > 0 && is_digit(name[from - 1])) --from;
    std::int32_t value = -1;
    const auto [end, problem] = std::from_chars(name.data() + from, name.data() + at, value);
    if (problem == std::errc{}) {
      std::string_view before = name.substr(0, from);
      while (!before.empty() && (before.back() == '_' || before.back() == '-' || before.back() == '.' || before.back() == '=')) {
        before.remove_suffix(1);
      }
      (before.ends_with("rank") || before.ends_with("RANK") || before.ends_with("Rank") ? named : others).push_back(value);
    }
    at = from;
  }
  named.insert(named.end(), others.begin(), others.end());
  return named;
}

std::vector<FlightRank> flight_ranks(std::vector<std::unique_ptr<FlightDump>>& dumps) {
  std::vector<FlightRank> result(dumps.size());
  std::map<std::int32_t, std::size_t> owner;
  std::set<std::int32_t> world;
  for (const auto& dump : dumps) {
    for (const FlightGroup& group : dump->groups) world.insert(group.members.begin(), group.members.end());
    world.insert(dump->others.begin(), dump->others.end());
  }
  const auto claim = [&](std::size_t i, std::int32_t rank) {
    const auto [at, added] = owner.try_emplace(rank, i);
    if (added) {
      result[i].rank = rank;
    } else {
      result[i].why = fmt::format("seems to be of rank {}, as {} is", rank, dumps[at->second]->path);
      result[i].rival = at->second;
    }
  };
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < dumps.size(); ++i) {
    const auto possible = candidates(*dumps[i]);
    const std::vector<std::int32_t> numbers = numbers_of_name(dumps[i]->path);
    const auto fits = std::ranges::find_if(numbers, [&](std::int32_t number) {
      return !possible || possible->empty() || possible->contains(number);
    });
    if (fits != numbers.end()) {
      claim(i, *fits);
    } else if (possible && possible->size() == 1) {
      claim(i, *possible->begin());
      if (!numbers.empty()) {
        dumps[i]->warnings.push_back(fmt::format("its groups are those of rank {}, whatever its name says", *possible->begin()));
      }
    } else {
      open.push_back(i);
    }
  }
  // One nameless file for each rank that is left: in the order of the names.
  std::vector<std::int32_t> free;
  for (const std::int32_t rank : world) {
    if (!owner.contains(rank)) free.push_back(rank);
  }
  for (std::size_t n = 0; n < open.size(); ++n) {
    if (open.size() == free.size()) {
      claim(open[n], free[n]);
      dumps[open[n]]->warnings.push_back(fmt::format("neither its name nor its groups tell its rank: taken as rank {}, by its place "
                                                     "among the names", free[n]));
    } else {
      result[open[n]].why = "neither its name nor its groups tell which rank wrote it: put the rank into its name (..._rank_3), or pass it as FILE=RANK";
    }
  }
  return result;
}

}  // namespace lockstep
