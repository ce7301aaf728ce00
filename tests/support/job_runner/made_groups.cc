// Finds them by their members.
#include "made_groups.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace lockstep::testing {
namespace {

using Place = std::tuple<long, std::size_t, std::int32_t>;  // key, rank in the parent, rank

std::vector<std::int32_t> members_of_split(const Job& job, const Operation& operation) {
  const auto& parent = job.communicator(operation.comm).members;
  std::vector<Place> places;
  for (std::size_t i = 0; i < parent.size(); ++i) {
    const ProgramIndex index = job.program_of_rank(parent[i]);
    if (index == kNoProgram) continue;
    for (const Operation& other : job.program(index).operations) {
      if (other.kind != OpKind::kSplit || other.comm != operation.comm || other.seq != operation.seq) continue;
      if (job.extra(other).color != job.extra(operation).color) continue;
      const std::string& key = job.extra(other).key;
      places.emplace_back(key.empty() ? parent[i] : std::atol(key.c_str()), i, parent[i]);
    }
  }
  std::ranges::sort(places);
  std::vector<std::int32_t> members;
  for (const auto& [key, place, rank] : places) members.push_back(rank);
  return members;
}

bool makes_a_part(const Operation& operation) {
  return (operation.kind == OpKind::kSplit || operation.kind == OpKind::kNewGroup || operation.kind == OpKind::kShrink) &&
         operation.comm != kNoComm;
}

/// The members meet on what is made, not on what it is made of.
bool meets_on_the_new(OpKind kind) { return kind == OpKind::kInit || kind == OpKind::kGrow || kind == OpKind::kShrink; }

std::vector<std::int32_t> members_made(const Job& job, const Operation& operation) {
  if (operation.kind == OpKind::kSplit) return members_of_split(job, operation);
  return operation.kind == OpKind::kShrink ? job.communicator(operation.comm).members : job.extra(operation).members;
}

}  // namespace

std::vector<CommIndex> can_make(const Job& job, const Program& program, const Operation& operation) {
  std::vector<CommIndex> found;
  if (!makes_a_part(operation)) return found;
  const std::vector<std::int32_t> members = members_made(job, operation);
  if (std::ranges::find(members, program.rank) == members.end()) return found;
  for (std::uint32_t i = 0; i < job.communicators().size(); ++i)
    if (const CommIndex comm{i}; comm != operation.comm && job.communicator(comm).members == members) found.push_back(comm);
  return found;
}

bool is_made_by_a_line(const Job& job, CommIndex comm) {
  for (const Program& program : job.programs()) {
    bool used = false;
    for (const Operation& operation : program.operations) {
      if (meets_on_the_new(operation.kind) && operation.comm == comm) return !used;
      used = used || operation.comm == comm;
      if (used || !makes_a_part(operation)) continue;
      const std::vector<CommIndex> made = can_make(job, program, operation);
      if (std::ranges::find(made, comm) != made.end()) return true;
    }
  }
  return false;
}

CommIndex shrunk_from(const Job& job, CommIndex comm) {
  const std::string& id = job.communicator(comm).id;
  for (std::uint32_t i = 0; i < job.communicators().size(); ++i) {
    const std::string& parent = job.communicators()[i].id;
    if (id.size() > parent.size() && id.starts_with(parent) && std::string_view(id).substr(parent.size()).starts_with("/shrink") &&
        id.find('/', parent.size() + 1) == std::string::npos) {
      return CommIndex{i};
    }
  }
  return kNoComm;
}

std::size_t count_new_groups(const Job& job) {
  std::ptrdiff_t most = 0;
  for (const Program& program : job.programs())
    most = std::max(most, std::ranges::count(program.operations, OpKind::kNewGroup, &Operation::kind));
  return static_cast<std::size_t>(most);
}

}  // namespace lockstep::testing
