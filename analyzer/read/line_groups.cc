// Which communicator a line means; see LineGroups in job_line.h.
#include <algorithm>

#include "read/job_line.h"

namespace lockstep {
namespace {

constexpr std::string_view kWorld = JobIntake::kWorldName;

}  // namespace

bool is_world_name(std::string_view name) {
  return name == kWorld || name == "world" || name == "MPI_COMM_WORLD" || name == "default_pg";
}

bool LineGroups::Group::may_contain(std::int32_t rank) const {
  return sorted_members.empty() || std::ranges::binary_search(sorted_members, rank);
}

void LineGroups::add(const std::string& name, CommIndex comm, std::span<const std::int32_t> members) {
  Group group{.comm = comm, .sorted_members = {members.begin(), members.end()}};
  std::ranges::sort(group.sorted_members);
  if (groups_.try_emplace(name, std::move(group)).second && defined_++ == 0) first_defined_ = name;
}

const LineGroups::Group* LineGroups::find(std::string_view name) const {
  const auto at = groups_.find(name);
  return at == groups_.end() ? nullptr : &at->second;
}

const LineGroups::Group& LineGroups::world() {
  if (const Group* known = find(kWorld)) return *known;
  // All ranks are not known yet: JobIntake fills the members in at the end.
  return groups_.try_emplace(std::string(kWorld), Group{.comm = intake_.world()}).first->second;
}

const LineGroups::Group& LineGroups::find_or_make(std::string_view name) {
  if (const Group* known = find(name)) return *known;
  if (is_world_name(name)) return world();
  const CommIndex comm = intake_.builder().communicator(name, name, {});
  return groups_.try_emplace(std::string(name), Group{.comm = comm}).first->second;
}

const LineGroups::Group& LineGroups::for_message() {
  if (defined_ == 1) return *find(first_defined_);
  for (const std::string_view name : {"pp", "p2p"}) {
    if (const Group* known = find(name)) return *known;
  }
  return world();
}

const LineGroups::Group* LineGroups::for_collective() {
  if (defined_ == 0) return &world();
  return defined_ == 1 ? &for_message() : nullptr;
}

}  // namespace lockstep
