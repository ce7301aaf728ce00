// Joining what several files say about one job; see the header for the rules.
#include "read/job_intake.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep {
namespace {

constexpr std::size_t kLongestMembersText = 160;

void append_range(std::string& text, std::int64_t first, std::int64_t last) {
  if (!text.empty()) text += ',';
  text += first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
}

std::uint64_t hash_members(std::span<const std::int32_t> members) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a, 64 bits, over values instead of bytes
  for (const std::int32_t member : members) {
    hash ^= static_cast<std::uint32_t>(member);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace

std::string members_text(std::span<const std::int32_t> members) {
  std::string text;
  for (std::size_t i = 0; i < members.size() && text.size() <= kLongestMembersText;) {
    std::size_t next = i + 1;
    while (next < members.size() && members[next] == static_cast<std::int64_t>(members[next - 1]) + 1) ++next;
    append_range(text, members[i], members[next - 1]);
    i = next;
  }
  if (text.size() <= kLongestMembersText) return text;
  return fmt::format("{}..{}({},{:016x})", members.front(), members.back(), members.size(), hash_members(members));
}

bool drop_repeated(std::vector<std::int32_t>& members) {
  std::vector<std::int32_t> sorted = members;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) == sorted.end()) return false;
  std::set<std::int32_t> seen;
  std::erase_if(members, [&seen](std::int32_t member) { return !seen.insert(member).second; });
  return true;
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  return text.size() <= kLongest ? fmt::format("'{}'", text) : fmt::format("'{}...'", text.substr(0, kLongest));
}

bool JobIntake::same_operation(const Operation& left, const Operation& right) {
  Operation a = left;
  Operation b = right;
  a.line = b.line = 0;
  if (a.extra != b.extra) {
    // Separate extras with equal contents are made for rare data, e.g. the members of a creation.
    if (a.extra == 0 || b.extra == 0) return false;
    const OperationExtra& x = builder_.extra_of(a);
    const OperationExtra& y = builder_.extra_of(b);
    if (std::tie(x.counts, x.members, x.color, x.key, x.label, x.native_name) !=
        std::tie(y.counts, y.members, y.color, y.key, y.label, y.native_name)) {
      return false;
    }
  }
  return std::tie(a.count, a.comm, a.peer, a.tag, a.launch, a.stream, a.handle, a.payload, a.site, a.datatype,
                  a.redop, a.kind, a.state, a.flags) == std::tie(b.count, b.comm, b.peer, b.tag, b.launch, b.stream,
                                                                 b.handle, b.payload, b.site, b.datatype, b.redop,
                                                                 b.kind, b.state, b.flags);
}

void JobIntake::add_program(Program program) {
  const std::int32_t rank = program.rank;
  if (!builder_.has_program(rank)) {
    builder_.program(rank) = std::move(program);
    ++program_count_;
    return;
  }
  Program& known = builder_.program(rank);
  auto& old_calls = known.operations;
  auto& new_calls = program.operations;
  const std::size_t common = std::min(old_calls.size(), new_calls.size());
  std::size_t equal = 0;
  while (equal < common && same_operation(old_calls[equal], new_calls[equal])) ++equal;
  const std::string files =
      fmt::format("{} and {}", builder_.source_path(known.source), builder_.source_path(program.source));
  if (equal == old_calls.size() && equal == new_calls.size()) {
    builder_.warn(fmt::format("{} hold the same {} calls of rank {}: used once", files, equal, rank));
    known.tail_missing = known.tail_missing && program.tail_missing;
    return;
  }
  // The last call of an earlier snapshot may have gone further since.
  bool is_snapshot = equal == common;
  if (equal + 1 == common) {
    Operation last = old_calls[equal];
    last.state = new_calls[equal].state;
    is_snapshot = same_operation(last, new_calls[equal]);
  }
  if (new_calls.size() > old_calls.size() ||
      (new_calls.size() == old_calls.size() && is_snapshot && new_calls.back().state > old_calls.back().state)) {
    std::swap(known, program);
  }
  builder_.warn(fmt::format("{} hold different records of rank {}, equal in the first {} calls: the longer one, {}, is used",
                            files, rank, equal, builder_.source_path(known.source)));
  builder_.set_incomplete();
  if (!is_snapshot) known.tail_missing = true;
}

CommIndex JobIntake::communicator(std::string_view id, std::string_view name, std::span<const std::int32_t> members,
                                  std::string_view where) {
  const CommIndex index = builder_.communicator(id, name, members);
  const Communicator& known = builder_.communicator(index);
  if (!members.empty() && !std::ranges::equal(known.members, members)) {
    if (known.members.empty()) {
      builder_.set_members(index, members);
    } else {
      builder_.warn(fmt::format("{}: {} has members [{}] here and [{}] before: the first are used", where,
                                excerpt(name), members_text(members), members_text(known.members)));
    }
  }
  return index;
}

void JobIntake::set_library(Library library, std::string_view path) {
  if (library == Library::kUnknown || library == builder_.library()) return;
  if (builder_.library() == Library::kUnknown) {
    builder_.set_library(library);
  } else {
    builder_.warn(fmt::format("{}: was recorded under {}, other files under {}: the rules of {} are used", path,
                              library_name(library), library_name(builder_.library()),
                              library_name(builder_.library())));
  }
}

std::uint32_t JobIntake::shared_extra(std::string_view label, std::string_view native_name) {
  if (label.empty() && native_name.empty()) return 0;
  const auto [at, added] = shared_extras_.try_emplace({builder_.intern(label), builder_.intern(native_name)}, 0U);
  if (added) at->second = builder_.extra({.label = std::string(label), .native_name = std::string(native_name)});
  return at->second;
}

CommIndex JobIntake::world() {
  world_used_ = true;
  return builder_.communicator(kWorldName, kWorldName, {});
}

void JobIntake::add_to_world(std::span<const std::int32_t> ranks) {
  world_ranks_.insert(world_ranks_.end(), ranks.begin(), ranks.end());
  // Every rank of a large job lists the same groups again.
  constexpr std::size_t kSlack = std::size_t{1} << 16;
  if (world_ranks_.size() > 2 * compacted_ + kSlack) compact_world();
}

void JobIntake::compact_world() {
  std::ranges::sort(world_ranks_);
  world_ranks_.erase(std::unique(world_ranks_.begin(), world_ranks_.end()), world_ranks_.end());
  compacted_ = world_ranks_.size();
}

void JobIntake::set_ranks_expected(std::size_t ranks) {
  builder_.set_ranks_expected(ranks);
  expected_stated_ = true;
}

Job JobIntake::finish() && {
  compact_world();
  if (!expected_stated_) builder_.set_ranks_expected(world_ranks_.size());
  if (world_used_ && !builder_.communicator(world()).members_known) builder_.set_members(world(), world_ranks_);
  return std::move(builder_).build();
}

FileWarnings::~FileWarnings() {
  if (count_ <= kMaxShown) return;
  builder_.warn(fmt::format("{}: {} more warnings about this file, the last about line {}", path_, count_ - kMaxShown,
                            last_line_));
}

void FileWarnings::warn(std::uint64_t line, std::string_view message) {
  last_line_ = line;
  if (++count_ > kMaxShown) return;
  builder_.warn(line == 0 ? fmt::format("{}: {}", path_, message) : fmt::format("{}:{}: {}", path_, line, message));
}

}  // namespace lockstep
