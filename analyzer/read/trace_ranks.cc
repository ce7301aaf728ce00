// See the header.
#include "read/trace_ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace lockstep {
namespace {

bool is_usable(const TraceComm& comm) {
  return comm.known() && comm.record.library == trace::Library::kNccl && comm.record.rank >= 0 && comm.record.nranks > 0;
}

std::int32_t rank_in_largest(const TraceTables& tables, const std::vector<std::uint32_t>& comms) {
  std::int32_t largest = 0;
  std::int32_t rank = -1;
  for (const std::uint32_t id : comms) {
    const trace::CommRecord& record = tables.comms[id].record;
    if (record.nranks <= largest) continue;
    largest = record.nranks;
    rank = record.rank;
  }
  return rank;
}

/// Communicators by the device they are on. Two of one identity are of two ranks, wherever they are.
constexpr std::size_t kMostParts = 256;  // more devices than any host has: such a file is damaged, and read as of one rank
using PartKey = std::pair<std::int32_t, std::size_t>;
std::map<PartKey, std::vector<std::uint32_t>> by_device(const TraceTables& tables) {
  std::map<PartKey, std::vector<std::uint32_t>> parts;
  std::map<std::uint32_t, PartKey> part_of;
  std::map<std::uint64_t, std::set<PartKey>> taken;
  std::vector<std::uint32_t> unplaced;
  for (std::uint32_t id = 0; id < tables.comms.size(); ++id) {
    const TraceComm& comm = tables.comms[id];
    if (!is_usable(comm)) continue;
    PartKey key{comm.record.device, 0};
    const auto parent = part_of.find(comm.record.parent);
    if (parent != part_of.end()) key = parent->second;
    if (comm.record.device < 0 && parent == part_of.end()) {
      unplaced.push_back(id);
      continue;
    }
    std::set<PartKey>& used = taken[comm.record.identity];
    while (comm.record.identity != 0 && key.second < kMostParts && !used.insert(key).second) ++key.second;
    part_of.emplace(id, key);
    parts[key].push_back(id);
  }
  for (const std::uint32_t id : unplaced) {
    const PartKey key = parts.empty() ? PartKey{-1, 0} : parts.begin()->first;
    parts[key].push_back(id);
  }
  return parts;
}

}  // namespace

std::vector<RankPart> ranks_of(const TraceTables& tables) {
  const auto parts = by_device(tables);
  if (parts.size() <= 1 || parts.size() > kMostParts) {
    std::int32_t rank = tables.job_rank();
    if (rank < 0 && !parts.empty()) rank = rank_in_largest(tables, parts.begin()->second);
    return {{.rank = rank}};
  }
  std::vector<RankPart> ranks;
  for (const auto& [key, comms] : parts) {
    RankPart part{.rank = rank_in_largest(tables, comms), .device = key.first};
    part.elsewhere.assign(tables.comms.size(), true);
    for (std::uint32_t id = 0; id < tables.comms.size(); ++id) {
      if (!is_usable(tables.comms[id])) part.elsewhere[id] = false;
    }
    for (const std::uint32_t id : comms) part.elsewhere[id] = false;
    ranks.push_back(std::move(part));
  }
  return ranks;
}

bool fill_members(std::vector<std::int32_t>& members, const std::vector<std::int32_t>& known, std::int32_t job_ranks) {
  std::vector<std::size_t> gaps;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] < 0) gaps.push_back(i);
  }
  if (gaps.empty()) return true;
  const std::set<std::int32_t> taken(members.begin(), members.end());
  if (members.size() == static_cast<std::size_t>(std::max(job_ranks, 0))) {
    // Everybody is a member: those that are left, in order.
    std::size_t next = 0;
    for (std::int32_t rank = 0; rank < job_ranks && next < gaps.size(); ++rank) {
      if (!taken.contains(rank)) members[gaps[next++]] = rank;
    }
    return next == gaps.size();
  }
  // Groups of a mesh are evenly spaced: two members tell the step, the others must fit.
  const auto first = std::ranges::find_if(members, [](std::int32_t rank) { return rank >= 0; });
  if (first == members.end()) return false;
  const auto second = std::find_if(first + 1, members.end(), [](std::int32_t rank) { return rank >= 0; });
  if (second == members.end()) return false;
  const auto apart = static_cast<std::int32_t>(second - first);
  const std::int32_t step = (*second - *first) / apart;
  const std::int32_t begin = *first - step * static_cast<std::int32_t>(first - members.begin());
  std::vector<std::int32_t> even(members.size());
  for (std::size_t i = 0; i < even.size(); ++i) even[i] = begin + step * static_cast<std::int32_t>(i);
  const std::int32_t highest = job_ranks > 0 ? job_ranks : known.empty() ? 0 : known.back() + 1;
  for (std::size_t i = 0; i < even.size(); ++i) {
    if (members[i] >= 0 && members[i] != even[i]) return false;
    if (even[i] < 0 || even[i] >= highest || (members[i] < 0 && taken.contains(even[i]))) return false;
  }
  if (step == 0) return false;
  members = std::move(even);
  return true;
}

}  // namespace lockstep
