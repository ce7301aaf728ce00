// See the header.
#include "read/flight_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace lockstep {
namespace {

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [at, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || at != text.data() + text.size()) return std::nullopt;
  return value;
}

/// pg_status has numbers of the process, pg_config names. An entry names both; else both lists are in the order in which the
/// groups were made, and that is believed where they are equally long and no entry contradicts.
void join_status(const FlightDump& dump, std::vector<const FlightStatus*>& status) {
  status.assign(dump.groups.size(), nullptr);
  std::map<std::int64_t, const FlightStatus*> by_id;
  for (const FlightStatus& row : dump.status) by_id[row.id] = &row;
  for (std::size_t g = 0; g < dump.groups.size(); ++g) {
    if (!dump.groups[g].id) continue;
    if (const auto row = by_id.find(*dump.groups[g].id); row != by_id.end()) status[g] = row->second;
  }
  if (by_id.size() != dump.groups.size()) return;
  std::vector<std::pair<std::int64_t, std::size_t>> by_name;
  for (std::size_t g = 0; g < dump.groups.size(); ++g) {
    const auto value = number(dump.groups[g].name);
    if (!value) return;
    by_name.emplace_back(*value, g);
  }
  std::ranges::sort(by_name);
  std::size_t n = 0;
  for (const auto& [id, row] : by_id) {
    const FlightStatus* const known = status[by_name[n].second];
    if (known != nullptr && known != row) return;
    ++n;
  }
  n = 0;
  for (const auto& [id, row] : by_id) status[by_name[n++].second] = row;
}

class GroupJoiner {
 public:
  GroupJoiner(std::span<const RankedDump> dumps, JobIntake& intake) : dumps_(dumps), intake_(intake) {}

  JobGroups run() {
    result_.group_of.resize(dumps_.size());
    for (std::size_t d = 0; d < dumps_.size(); ++d) {
      result_.group_of[d].assign(dumps_[d].dump->groups.size(), kNone);
      for (std::size_t g = 0; g < dumps_[d].dump->groups.size(); ++g) {
        if (!dumps_[d].dump->groups[g].members.empty()) add(d, g, dumps_[d].dump->groups[g].members);
      }
    }
    for (std::size_t d = 0; d < dumps_.size(); ++d) {
      for (std::size_t g = 0; g < dumps_[d].dump->groups.size(); ++g) {
        if (result_.group_of[d][g] == kNone) add_without_members(d, g);
      }
    }
    for (std::size_t d = 0; d < dumps_.size(); ++d) intake_.add_to_world(dumps_[d].dump->others);
    compare_members();
    take_back_failed();
    for (std::size_t d = 0; d < dumps_.size(); ++d) find_members(d);
    for (JobGroup& group : result_.groups) {
      for (const FlightMember& member : group.members) {
        group.completed = std::max(group.completed, member.completed);
        group.made = std::max(group.made, member.last);
      }
    }
    return std::move(result_);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void add(std::size_t d, std::size_t g, const std::vector<std::int32_t>& members) {
    const FlightGroup& group = dumps_[d].dump->groups[g];
    std::vector<std::int32_t> sorted = members;
    std::ranges::sort(sorted);
    const std::string id = fmt::format("{}[{}]", group.name, members_text(sorted));
    const auto [at, added] = known_.try_emplace(id, result_.groups.size());
    result_.group_of[d][g] = at->second;
    if (added) {
      const std::string& name = group.description.empty() ? group.name : group.description;
      result_.groups.push_back({.comm = intake_.builder().communicator(id, name, members), .has_members = true});
      intake_.add_to_world(members);
    }
    JobGroup& joined = result_.groups[at->second];
    joined.has_messages = joined.has_messages || group.has_messages;
  }

  /// Subgroups of one call share a name and no rank. Two dumps of members that list other members for it: the dumps are of two
  /// runs, or ranks made their groups in different orders.
  void compare_members() {
    std::map<std::string_view, std::vector<std::pair<std::size_t, std::size_t>>> by_name;  // name: dump and joined group
    for (std::size_t d = 0; d < dumps_.size(); ++d) {
      for (std::size_t g = 0; g < dumps_[d].dump->groups.size(); ++g) {
        const FlightGroup& group = dumps_[d].dump->groups[g];
        if (!group.members.empty()) by_name[group.name].emplace_back(d, result_.group_of[d][g]);
      }
    }
    constexpr std::size_t kMostTold = 16;
    std::set<std::pair<std::size_t, std::size_t>> told;
    for (const auto& [name, lists] : by_name) {
      std::map<std::int32_t, std::pair<std::size_t, std::size_t>> of_rank;
      bool differ = false;
      for (const auto& [d, joined] : lists) {
        of_rank.try_emplace(dumps_[d].rank, d, joined);
        differ = differ || joined != lists.front().second;
      }
      if (!differ) continue;
      for (const auto& [d, joined] : lists) {
        for (const std::int32_t member : members_of(joined)) {
          const auto other = of_rank.find(member);
          if (other == of_rank.end() || other->second.second == joined || has_list(lists, other->second.first, joined)) continue;
          const auto pair = std::minmax(joined, other->second.second);
          if (intake_.reported().contradictions.size() >= kMostTold || !told.emplace(pair.first, pair.second).second) continue;
          std::vector<std::int32_t> ranks(members_of(joined).begin(), members_of(joined).end());
          ranks.insert(ranks.end(), members_of(other->second.second).begin(), members_of(other->second.second).end());
          intake_.reported().contradictions.push_back(
              {fmt::format("{} says that process group {} has members [{}], {} of rank {} says [{}]: they are of two runs, or the ranks created their "
                           "groups in different orders", dumps_[d].dump->path, excerpt(name), members_text(members_of(joined)),
                           dumps_[other->second.first].dump->path, member, members_text(members_of(other->second.second))),
               std::move(ranks)});
        }
      }
    }
  }

  const std::vector<std::int32_t>& members_of(std::size_t joined) const { return intake_.builder().communicator(result_.groups[joined].comm).members; }

  static bool has_list(const std::vector<std::pair<std::size_t, std::size_t>>& lists, std::size_t d, std::size_t joined) {
    return std::ranges::find(lists, std::pair{d, joined}) != lists.end();
  }

  void add_without_members(std::size_t d, std::size_t g) {
    const FlightGroup& group = dumps_[d].dump->groups[g];
    const std::vector<std::int32_t>* found = nullptr;
    std::size_t matches = 0;
    for (std::size_t other = 0; other < dumps_.size() && matches < 2; ++other) {
      for (const FlightGroup& candidate : dumps_[other].dump->groups) {
        if (candidate.name != group.name || std::ranges::find(candidate.members, dumps_[d].rank) == candidate.members.end()) continue;
        if (found == nullptr || !std::ranges::equal(*found, candidate.members)) ++matches;
        found = &candidate.members;
      }
    }
    if (matches == 1) return add(d, g, *found);
    const std::string id = group.name;
    const auto [at, added] = known_.try_emplace(id, result_.groups.size());
    result_.group_of[d][g] = at->second;
    if (added) {
      const bool is_world = group.name == "0" || group.description == "default_pg";
      const std::string& name = group.description.empty() ? group.name : group.description;
      result_.groups.push_back({.comm = is_world ? intake_.world() : intake_.builder().communicator(id, name, {}), .is_world = is_world});
    }
    JobGroup& joined = result_.groups[at->second];
    joined.has_messages = joined.has_messages || group.has_messages;
  }

  /// The last call of a dump whose calls retire when done may have failed: surely where it takes all members and one of them has
  /// not come to it; nobody knows where its root counts, which is not recorded; else it does not matter.
  void take_back_failed() {
    std::vector<std::map<std::size_t, std::uint32_t>> made(dumps_.size());  // by dump and joined group: the last call
    for (std::size_t d = 0; d < dumps_.size(); ++d) {
      const FlightDump& dump = *dumps_[d].dump;
      for (std::size_t i = 0; i < dump.operations.size(); ++i) {
        if (!is_collective(dump.operations[i].kind)) continue;
        std::uint32_t& last = made[d][result_.group_of[d][dump.calls[i].group]];
        last = std::max(last, dump.calls[i].seq);
      }
    }
    const auto lacks = [&](std::size_t d, std::size_t joined, std::uint32_t seq) {
      const auto last = made[d].find(joined);
      if (last != made[d].end()) return last->second < seq;
      const Communicator& comm = intake_.builder().communicator(result_.groups[joined].comm);
      const bool is_member = result_.groups[joined].is_world || std::ranges::find(comm.members, dumps_[d].rank) != comm.members.end();
      return is_member && dumps_[d].dump->first_record == 0;
    };
    for (std::size_t d = 0; d < dumps_.size(); ++d) {
      FlightDump& dump = *dumps_[d].dump;
      if (!dump.retires_when_done || dump.operations.empty()) continue;
      Operation& last = dump.operations.back();
      if (last.state != OpState::kCompleted || !is_collective(last.kind)) continue;
      if (!completion_proves_arrival(last.kind)) {
        last.state = OpState::kEnqueued;
        continue;
      }
      const std::size_t joined = result_.group_of[d][dump.calls.back().group];
      for (std::size_t other = 0; other < dumps_.size(); ++other) {
        if (other == d || !lacks(other, joined, dump.calls.back().seq)) continue;
        last.state = OpState::kEnqueued;
        dump.last_failed = true;
        break;
      }
    }
  }

  void find_members(std::size_t d) {
    const FlightDump& dump = *dumps_[d].dump;
    std::vector<FlightMember> members(dump.groups.size(), {.dump = d});
    std::vector<bool> stopped(dump.groups.size(), false);  // behind a call that had not completed
    for (std::size_t i = 0; i < dump.operations.size(); ++i) {
      const FlightCall& call = dump.calls[i];
      if (!is_collective(dump.operations[i].kind)) continue;
      FlightMember& member = members[call.group];
      const std::uint32_t seq = call.seq != 0 ? call.seq : member.last + 1;
      // Calls before its first entry were dropped by the ring or left out as completed; the ring drops the oldest.
      if (member.first == 0) {
        member.first = seq;
        member.completed = seq - 1;
      }
      member.last = std::max(member.last, seq);
      stopped[call.group] = stopped[call.group] || dump.operations[i].state != OpState::kCompleted;
      if (!stopped[call.group] && completion_proves_arrival(dump.operations[i].kind)) member.completed = std::max(member.completed, seq);
    }
    std::vector<const FlightStatus*> status;
    join_status(dump, status);
    for (std::size_t g = 0; g < dump.groups.size(); ++g) {
      JobGroup& group = result_.groups[result_.group_of[d][g]];
      const FlightStatus* const row = status[g];
      // gloo counts messages there, and has no entries of them.
      if (!dump.retires_when_done && row != nullptr && members[g].first == 0 && row->last_enqueued == row->last_completed && row->last_enqueued < 0xffffffffLL) {
        members[g].stated = static_cast<std::uint32_t>(std::max<std::int64_t>(row->last_enqueued, 0));
      }
      group.members.push_back(members[g]);
    }
  }

  std::span<const RankedDump> dumps_;
  JobIntake& intake_;
  JobGroups result_;
  std::map<std::string, std::size_t> known_;
};

}  // namespace

JobGroups join_flight_groups(std::span<const RankedDump> dumps, JobIntake& intake) { return GroupJoiner(dumps, intake).run(); }

}  // namespace lockstep
