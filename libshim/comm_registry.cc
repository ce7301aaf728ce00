#include "comm_registry.h"

#include <cstring>

#include "clock.h"
#include "recorder.h"
#include "trace_writer.h"

namespace lockstep::shim {

constinit Comm g_comms[kCommSlots] = {};

namespace {

constinit SpinLock g_lock;
constinit std::uint32_t g_next_id = 1;

// How many communicators each list of members has had; open addressing, never emptied.
struct ListCount {
  std::uint64_t hash = 0;
  std::uint32_t creations = 0;
};
constexpr std::uint32_t kLists = 8192;
constinit ListCount g_lists[kLists] = {};

std::uint32_t next_creation(std::uint64_t hash) noexcept {
  std::uint64_t at = hash;
  for (std::uint32_t tries = 0; tries < 64; ++tries, ++at) {
    ListCount& list = g_lists[at % kLists];
    if (list.hash == 0) list.hash = hash;
    if (list.hash == hash) return list.creations++;
  }
  return 0xFFFF'FFFF;  // more lists than anyone has: equal on all members only by luck, so no creation number
                       // at all
}

std::uint64_t hash_members(const std::int32_t* members, std::int32_t count) noexcept {
  std::uint64_t hash = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    hash = trace::mix(hash ^ static_cast<std::uint64_t>(static_cast<std::uint32_t>(members[i])),
                      static_cast<std::uint64_t>(i) + 1);
  }
  return hash == 0 ? 1 : hash;
}

constexpr std::uint32_t kMaxRanges = 4096;

// The next stretch of equal steps; `at` moves past it.
trace::RankRange next_range(const std::int32_t* members, std::int32_t count, std::int32_t& at) noexcept {
  trace::RankRange range{members[at], 1, 1};
  if (at + 1 < count) range.stride = members[at + 1] - members[at];
  ++at;
  while (at < count && members[at] == members[at - 1] + range.stride) {
    ++range.ranks;
    ++at;
  }
  return range;
}

std::uint32_t count_ranges(const std::int32_t* members, std::int32_t count) noexcept {
  std::uint32_t ranges = 0;
  for (std::int32_t at = 0; at < count && ranges <= kMaxRanges; ++ranges) next_range(members, count, at);
  return ranges;
}

trace::RankRange* write_ranges(trace::RankRange* to, const std::int32_t* members,
                               std::int32_t count) noexcept {
  for (std::int32_t at = 0; at < count;) *to++ = next_range(members, count, at);
  return to;
}

trace::CommEntry* take_entry(std::uint32_t id) noexcept {
  TraceMap& map = g_recorder.map;
  static constinit std::uint32_t next = 0;
  for (std::uint32_t tries = 0; tries < map.comm_entry_count; ++tries) {
    trace::CommEntry& entry = map.comm_entries[next++ % map.comm_entry_count];
    if (entry.comm != 0) continue;
    entry = trace::CommEntry{};
    std::atomic_ref(entry.comm).store(id, std::memory_order_release);
    return &entry;
  }
  mark_state(trace::kStateCommTableFull);
  return nullptr;
}

// The side record, with `members` or the ranges of `same` copied.
trace::CommRecord* write_record(const NewComm& made, std::uint32_t id, std::uint64_t identity,
                                std::uint32_t creation, std::uint8_t flags) noexcept {
  const trace::CommRecord* same = made.same_members != nullptr ? made.same_members->record : nullptr;
  std::uint32_t ranges = 0;
  std::uint32_t remote_ranges = 0;
  if (made.members != nullptr) {
    ranges = count_ranges(made.members, made.nranks);
    if (made.remote != nullptr) remote_ranges = count_ranges(made.remote, made.remote_ranks);
  } else if (same != nullptr) {
    ranges = same->ranges;
    remote_ranges = same->remote_ranges;
  }
  if (ranges > kMaxRanges || remote_ranges > kMaxRanges) {
    ranges = remote_ranges = 0;
    flags |= trace::kCommMembersCut;
  }
  const std::size_t name_bytes = std::strlen(made.name) + 1;
  const std::size_t bytes = sizeof(trace::CommRecord) +
                            (std::size_t{ranges} + remote_ranges) * sizeof(trace::RankRange) + name_bytes;
  auto* record = static_cast<trace::CommRecord*>(
      reserve_side(trace::SideKind::kCommunicator, static_cast<std::uint32_t>(bytes)));
  if (record == nullptr) return nullptr;
  record->comm = id;
  record->parent = made.parent != nullptr ? made.parent->id : 0;
  record->identity = identity;
  record->created_ticks = ticks();
  record->creation = creation;
  record->rank = made.rank;
  record->nranks = made.nranks;
  record->device = made.device;
  record->library = made.library;
  record->flags = flags;
  record->kind = static_cast<std::uint8_t>(made.kind);
  record->ranges = ranges;
  record->remote_ranges = remote_ranges;
  auto* to = reinterpret_cast<trace::RankRange*>(record + 1);
  if (made.members != nullptr && ranges > 0) {
    to = write_ranges(to, made.members, made.nranks);
    if (remote_ranges > 0) to = write_ranges(to, made.remote, made.remote_ranks);
  } else if (same != nullptr) {
    const auto* from = reinterpret_cast<const trace::RankRange*>(same + 1);
    for (std::uint32_t i = 0; i < ranges + remote_ranges; ++i) *to++ = from[i];
  }
  std::memcpy(to, made.name, name_bytes);
  commit_side(record);
  return record;
}

Comm* free_slot(std::uint64_t handle) noexcept {
  std::uint64_t at = spread(handle);
  Comm* free = nullptr;
  // Three quarters full at most, so that look-ups of unknown handles end soon.
  for (std::uint32_t tries = 0; tries < kCommSlots * 3 / 4; ++tries, ++at) {
    Comm& comm = g_comms[at % kCommSlots];
    const std::uint64_t found = comm.handle.load(std::memory_order_relaxed);
    if (found == handle) return &comm;  // a free that we did not see
    if (found == kGone && free == nullptr) free = &comm;
    if (found == 0) return free != nullptr ? free : &comm;
  }
  return free;
}

void write_end(const Comm& comm) noexcept {
  auto* record = static_cast<trace::CommEndRecord*>(
      reserve_side(trace::SideKind::kCommEnd, sizeof(trace::CommEndRecord)));
  if (record == nullptr) return;
  record->comm = comm.id;
  record->flags = comm.entry != nullptr ? comm.entry->flags : 0;
  record->calls = comm.calls;
  record->fingerprint = comm.fingerprint;
  commit_side(record);
}

void release(Comm& comm) noexcept {
  if (comm.id != 0) write_end(comm);
  if (comm.entry != nullptr) std::atomic_ref(comm.entry->comm).store(0, std::memory_order_release);
  comm.entry = nullptr;
}

}  // namespace

std::uint32_t add_comm(const NewComm& made) noexcept {
  const SpinGuard guard(g_lock);
  std::uint8_t flags = made.flags;
  std::uint64_t hash = 0;
  if (made.members != nullptr) {
    hash = hash_members(made.members, made.nranks);
    if (made.remote != nullptr) {
      // Both groups must find the same name: the one with the smaller first rank goes first.
      const std::uint64_t other = hash_members(made.remote, made.remote_ranks);
      hash = made.members[0] < made.remote[0] ? trace::mix(hash, other) : trace::mix(other, hash);
    }
  } else if (made.same_members != nullptr) {
    hash = made.same_members->members_hash;
    flags |=
        made.same_members->flags & (trace::kCommInter | trace::kCommForeignMembers | trace::kCommMembersCut);
  }
  const std::uint32_t creation = hash != 0 ? next_creation(hash) : 0;
  const std::uint64_t identity =
      made.identity != 0 ? made.identity : hash != 0 ? trace::mix(hash, std::uint64_t{creation} + 1) : 0;
  const std::uint32_t id = g_next_id++;
  trace::CommRecord* record = write_record(made, id, identity, creation, flags);

  Comm* comm = free_slot(made.handle);
  if (comm == nullptr) {
    mark_state(trace::kStateCommTableFull);
    return record != nullptr ? id : 0;
  }
  if (comm->handle.load(std::memory_order_relaxed) == made.handle) release(*comm);
  comm->id = record != nullptr ? id : 0;
  comm->inside.store(0, std::memory_order_relaxed);
  comm->calls = 0;
  comm->fingerprint = 0;
  comm->entry = record != nullptr ? take_entry(id) : nullptr;
  comm->members_hash = hash;
  comm->record = record;
  comm->rank = made.rank;
  comm->nranks = made.nranks;
  comm->flags = flags;
  comm->device = made.device;
  comm->identity = identity;
  comm->named = false;
  for (std::uint32_t& children : comm->children) children = 0;
  if (comm->entry != nullptr && (flags & trace::kCommAdopted) != 0) {
    std::atomic_ref(comm->entry->flags).fetch_or(trace::kCommLateStart);
  }
  comm->handle.store(made.handle, std::memory_order_release);
  return comm->id;
}

Comm* bind_comm(std::uint64_t made_as, std::uint64_t handle) noexcept {
  const SpinGuard guard(g_lock);
  Comm* from = find_comm(made_as);
  Comm* to = free_slot(handle);
  if (from == nullptr || to == nullptr || from == to) return nullptr;
  if (to->handle.load(std::memory_order_relaxed) == handle) release(*to);
  to->id = from->id;
  to->inside.store(0, std::memory_order_relaxed);
  to->calls = from->calls;
  to->fingerprint = from->fingerprint;
  to->entry = from->entry;
  to->members_hash = from->members_hash;
  to->record = from->record;
  to->rank = from->rank;
  to->nranks = from->nranks;
  to->flags = from->flags;
  to->device = from->device;
  to->identity = from->identity;
  to->named = from->named;
  for (int i = 0; i < 3; ++i) to->children[i] = 0;
  from->entry = nullptr;
  from->handle.store(kGone, std::memory_order_release);
  to->handle.store(handle, std::memory_order_release);
  return to;
}

void describe_again(Comm& comm, std::int32_t rank, std::int32_t nranks, std::int32_t device) noexcept {
  const SpinGuard guard(g_lock);
  comm.rank = rank;
  comm.nranks = nranks;
  comm.device = device;
  const trace::CommRecord* old = comm.record;
  if (old == nullptr) return;
  auto* record =
      static_cast<trace::CommRecord*>(reserve_side(trace::SideKind::kCommunicator, old->header.bytes));
  if (record == nullptr) return;
  constexpr std::size_t kHead = sizeof(trace::SideHeader);
  std::memcpy(reinterpret_cast<std::byte*>(record) + kHead, reinterpret_cast<const std::byte*>(old) + kHead,
              old->header.bytes - kHead);
  record->rank = rank;
  record->nranks = nranks;
  record->device = device;
  commit_side(record);
  comm.record = record;
}

void remove_comm(std::uint64_t handle) noexcept {
  const SpinGuard guard(g_lock);
  Comm* comm = find_comm(handle);
  if (comm == nullptr) return;
  release(*comm);
  comm->handle.store(kGone, std::memory_order_release);
}

void reset_comms() noexcept {
  g_lock.unlock();  // a fork may have copied it locked
  for (Comm& comm : g_comms) {
    comm.handle.store(0, std::memory_order_relaxed);
    comm.entry = nullptr;
    comm.record = nullptr;
  }
  for (ListCount& list : g_lists) list = ListCount{};
  g_next_id = 1;
}

void write_alias(std::uint32_t comm, std::uint64_t identity) noexcept {
  auto* record = static_cast<trace::CommAliasRecord*>(
      reserve_side(trace::SideKind::kCommAlias, sizeof(trace::CommAliasRecord)));
  if (record == nullptr) return;
  record->comm = comm;
  record->identity = identity;
  commit_side(record);
}

void mark_concurrent(Comm& comm) noexcept {
  mark_state(trace::kStateConcurrent);
  if (comm.entry != nullptr) std::atomic_ref(comm.entry->flags).fetch_or(trace::kCommConcurrent);
}

void mark_unverified(Comm& comm) noexcept {
  if (comm.entry != nullptr) std::atomic_ref(comm.entry->flags).fetch_or(trace::kCommUnverified);
}

}  // namespace lockstep::shim
