// Interning and the finishing pass; see the header.
#include "model/job_builder.h"

#include <algorithm>
#include <unordered_map>

#include "base/huge_heap.h"
#include "model/graph_replays.h"
#include "model/job_data.h"

namespace lockstep {
namespace {

struct CallSiteHash {
  std::size_t operator()(const CallSite& site) const {
    std::size_t hash = site.frames.size();
    for (const Frame& frame : site.frames) {
      hash = hash * 1000003U + std::hash<std::string>{}(frame.file);
      hash = hash * 1000003U + std::hash<std::string>{}(frame.function);
      hash = hash * 1000003U + frame.line;
    }
    return hash;
  }
};

/// Index of `name` in `table`, added if new; 0 once the 16-bit index is used up.
std::uint16_t intern_small(std::unordered_map<std::string, std::uint16_t>& index, std::deque<std::string>& table,
                           std::string_view name) {
  if (name.empty()) return 0;
  if (const auto known = index.find(std::string(name)); known != index.end()) return known->second;
  if (table.size() >= 65535) return 0;
  const auto next = static_cast<std::uint16_t>(table.size());
  table.emplace_back(name);
  index.emplace(std::string(name), next);
  return next;
}

/// Numbers the collectives of one rank per communicator, after the earlier ones. `next_seq` is all zero before and after.
/// True where the program launches graphs: what they execute is numbered once it is there.
bool number_collectives(Program& program, std::vector<std::uint32_t>& next_seq, std::vector<CommIndex>& touched) {
  touched.clear();
  program.placed = program.operations.size();
  bool launches_graphs = false;
  for (const EarlierCalls& earlier : program.earlier) {
    std::uint32_t& next = next_seq[to_size(earlier.comm)];
    if (next == 0 && earlier.calls != 0) touched.push_back(earlier.comm);
    next = std::max(next, earlier.calls);
  }
  for (Operation& operation : program.operations) {
    if ((operation.flags & kOpGap) != 0) {
      const auto here = static_cast<std::size_t>(&operation - program.operations.data());
      program.placed = std::min(program.placed, here);
    }
    launches_graphs |= operation.kind == OpKind::kGraphLaunch;
    if (!is_placed_collective(operation)) continue;
    std::uint32_t& next = next_seq[to_size(operation.comm)];
    if (next == 0) touched.push_back(operation.comm);
    // Readers that know positions have set them: a table of gigabytes is then only read.
    if (operation.seq != next) operation.seq = next;
    ++next;
  }
  for (const CommIndex comm : touched) next_seq[to_size(comm)] = 0;
  return launches_graphs;
}

}  // namespace

struct JobBuilder::Interning {
  std::unordered_map<std::string_view, StringIndex> strings;
  std::unordered_map<CallSite, SiteIndex, CallSiteHash> sites;
  std::unordered_map<std::string, SourceIndex> sources;
  std::unordered_map<std::string, std::uint16_t> datatypes;
  std::unordered_map<std::string, std::uint16_t> redops;
  std::unordered_map<std::string, CommIndex> communicators;
  std::unordered_map<std::int32_t, std::size_t> programs;
  std::unordered_map<std::int32_t, ProgramEnd> ends;
  std::size_t warnings = 0;
};

JobBuilder::JobBuilder() : data_(std::make_unique<Job::Data>()), interning_(std::make_unique<Interning>()) {}
JobBuilder::~JobBuilder() = default;
JobBuilder::JobBuilder(JobBuilder&&) noexcept = default;
JobBuilder& JobBuilder::operator=(JobBuilder&&) noexcept = default;

CommIndex JobBuilder::communicator(std::string_view id, std::string_view name,
                                   std::span<const std::int32_t> members) {
  const auto known = interning_->communicators.find(std::string(id));
  if (known != interning_->communicators.end()) return known->second;
  const CommIndex index{static_cast<std::uint32_t>(data_->communicators.size())};
  data_->communicators.push_back({.id = std::string(id),
                                  .name = std::string(name),
                                  .members = {members.begin(), members.end()},
                                  .members_known = !members.empty()});
  interning_->communicators.emplace(std::string(id), index);
  return index;
}

const Communicator& JobBuilder::communicator(CommIndex index) const {
  return data_->communicators[to_size(index)];
}

void JobBuilder::rename(CommIndex index, std::string_view name) {
  data_->communicators[to_size(index)].name = name;
}

void JobBuilder::set_members(CommIndex index, std::span<const std::int32_t> members) {
  Communicator& communicator = data_->communicators[to_size(index)];
  communicator.members.assign(members.begin(), members.end());
  communicator.members_known = !members.empty();
}

void JobBuilder::set_library(CommIndex index, Library library) {
  data_->communicators[to_size(index)].library = library;
}

void JobBuilder::set_lost_difference(CommIndex index, LostDifference difference) {
  data_->communicators[to_size(index)].lost_difference = std::move(difference);
}

Program& JobBuilder::program(std::int32_t rank) {
  const auto [at, added] = interning_->programs.try_emplace(rank, data_->programs.size());
  if (added) {
    data_->programs.push_back({.rank = rank});
    constexpr std::size_t kMany = 16;
    if (data_->programs.size() >= kMany) extend_heap_in_huge_pages();
  }
  return data_->programs[at->second];
}

bool JobBuilder::has_program(std::int32_t rank) const { return interning_->programs.contains(rank); }

void JobBuilder::set_end(std::int32_t rank, ProgramEnd end) { interning_->ends[rank] = end; }

StringIndex JobBuilder::intern(std::string_view text) {
  if (text.empty()) return StringIndex{};
  if (const auto known = interning_->strings.find(text); known != interning_->strings.end()) return known->second;
  const StringIndex index{static_cast<std::uint32_t>(data_->strings.size())};
  data_->strings.emplace_back(text);
  interning_->strings.emplace(data_->strings.back(), index);
  return index;
}

std::string_view JobBuilder::text(StringIndex index) const { return data_->strings[to_size(index)]; }

SiteIndex JobBuilder::site(const CallSite& site) {
  if (site.frames.empty()) return SiteIndex{};
  const auto [at, added] =
      interning_->sites.try_emplace(site, SiteIndex{static_cast<std::uint32_t>(data_->sites.size())});
  if (added) data_->sites.push_back(site);
  return at->second;
}

SourceIndex JobBuilder::source(std::string_view path) {
  const auto [at, added] = interning_->sources.try_emplace(
      std::string(path), SourceIndex{static_cast<std::uint32_t>(data_->sources.size())});
  if (added) data_->sources.emplace_back(path);
  return at->second;
}

const std::string& JobBuilder::source_path(SourceIndex index) const { return data_->sources[to_size(index)]; }

DatatypeIndex JobBuilder::datatype(std::string_view name) {
  return DatatypeIndex{intern_small(interning_->datatypes, data_->datatypes, name)};
}

RedopIndex JobBuilder::redop(std::string_view name) {
  return RedopIndex{intern_small(interning_->redops, data_->redops, name)};
}

std::uint32_t JobBuilder::extra(OperationExtra extra) {
  data_->extras.push_back(std::move(extra));
  return static_cast<std::uint32_t>(data_->extras.size() - 1);
}

OperationExtra& JobBuilder::extra_of(Operation& operation) {
  if (operation.extra == 0) operation.extra = extra({});
  return data_->extras[operation.extra];
}

void JobBuilder::set_library(Library library) { data_->library = library; }
Library JobBuilder::library() const { return data_->library; }
void JobBuilder::set_library_version(int code) { data_->library_version = code; }
void JobBuilder::set_implicit_launch_order(bool holds) { data_->implicit_launch_order = holds; }
void JobBuilder::set_name(std::string_view name) { data_->run.name = name; }
void JobBuilder::set_attempt(int attempt) { data_->run.attempt = attempt; }
void JobBuilder::add_other_run(std::string_view name) { data_->run.others.emplace_back(name); }
void JobBuilder::set_ranks_expected(std::size_t ranks) { data_->quality.ranks_expected = ranks; }

void JobBuilder::warn(std::string message) {
  if (++interning_->warnings <= InputQuality::kMaxWarnings) data_->quality.warnings.push_back(std::move(message));
}

void JobBuilder::set_incomplete() { data_->quality.complete = false; }

Job JobBuilder::build() && {
  std::ranges::sort(data_->programs, {}, &Program::rank);
  std::vector<std::uint32_t> next_seq(data_->communicators.size());
  std::vector<CommIndex> touched;
  std::size_t replay_budget = kMostReplayedCalls;
  for (std::size_t p = 0; p < data_->programs.size(); ++p) {
    Program& program = data_->programs[p];
    if (const auto end = interning_->ends.find(program.rank); end != interning_->ends.end()) {
      program.end = end->second;
      interning_->ends.erase(end);
    }
    if (number_collectives(program, next_seq, touched)) {
      if (!expand_graph_launches(program, replay_budget)) {
        warn("rank " + std::to_string(program.rank) + " launches graphs of more calls than are followed: the rest is left out");
        set_incomplete();
      }
      number_collectives(program, next_seq, touched);
    }
    for (const CommIndex comm : touched) {
      Communicator& communicator = data_->communicators[to_size(comm)];
      if (!communicator.members_known) communicator.members.push_back(program.rank);
    }
  }
  for (Communicator& communicator : data_->communicators) {
    if (communicator.library == data_->library) communicator.library = Library::kUnknown;
    data_->mixes_libraries |= communicator.library != Library::kUnknown;
  }
  data_->ends_without_program = std::move(interning_->ends);
  if (interning_->warnings > InputQuality::kMaxWarnings) {
    data_->quality.warnings.push_back(
        std::to_string(interning_->warnings - InputQuality::kMaxWarnings) + " more warnings of this kind");
  }
  Job job;
  job.data_ = std::move(data_);
  return job;
}

}  // namespace lockstep
