// Registers communicators: who is in them, in world ranks. Runs when one is made, never in another call's
// path.
#pragma once

#include "mpi/native.h"

namespace lockstep::shim::mpi::LOCKSTEP_BACKEND {

inline constinit std::int32_t g_world_rank = -1;
inline constinit std::int32_t g_world_ranks = 0;

inline constexpr std::int32_t kMaxListed = 1 << 17;
/// Rank lists while a communicator is made, under g_list_lock: too large for the host's stack, and malloc is
/// not ours to call.
inline constinit std::int32_t g_lists[3][kMaxListed] = {};
inline constinit SpinLock g_list_lock;

/// World ranks of `group` into `to`; how many, 0 = cannot say (too many, or processes of another world).
inline std::int32_t list_group(MPI_Group group, std::int32_t* to, bool& foreign) noexcept {
  int size = 0;
  if (g_native.Group_size(group, &size) != MPI_SUCCESS || size <= 0 || size > kMaxListed) return 0;
  MPI_Group world{};
  if (g_native.Comm_group(g_constants.world, &world) != MPI_SUCCESS) return 0;
  std::int32_t* own = g_lists[2];
  for (int i = 0; i < size; ++i) own[i] = i;
  const bool translated = g_native.Group_translate_ranks(group, size, own, world, to) == MPI_SUCCESS;
  g_native.Group_free(&world);
  if (!translated) return 0;
  for (int i = 0; i < size; ++i) {
    if (to[i] == MPI_UNDEFINED) {
      foreign = true;
      return 0;
    }
  }
  return size;
}

/// Hash over the world ranks of a group that was passed in; 0 = not known.
inline std::uint64_t hash_group(MPI_Group group, std::int32_t& size) noexcept {
  const SpinGuard guard(g_list_lock);
  bool foreign = false;
  size = list_group(group, g_lists[0], foreign);
  std::uint64_t hash = 0;
  for (std::int32_t i = 0; i < size; ++i) {
    hash = trace::mix(hash ^ static_cast<std::uint64_t>(static_cast<std::uint32_t>(g_lists[0][i])),
                      static_cast<std::uint64_t>(i) + 1);
  }
  return hash;
}

/// A communicator that the library just made. `same` = it has that one's members: nothing is asked then.
inline std::uint32_t register_comm(MPI_Comm comm, OpKind kind, const Comm* parent, const Comm* same,
                                   const char* name, std::uint8_t flags) noexcept {
  const ErrnoKeeper keep;
  NewComm made;
  made.handle = to_word(comm);
  made.parent = parent;
  made.kind = kind;
  made.name = name;
  made.flags = flags;
  if (same != nullptr) {
    made.same_members = same;
    made.rank = same->rank;
    made.nranks = same->nranks;
    return add_comm(made);
  }
  const SpinGuard guard(g_list_lock);
  int inter = 0;
  int rank = 0;
  MPI_Group group{};
  bool foreign = false;
  g_native.Comm_test_inter(comm, &inter);
  g_native.Comm_rank(comm, &rank);
  made.rank = rank;
  int size = 0;
  g_native.Comm_size(comm, &size);
  made.nranks = size;
  if (g_native.Comm_group(comm, &group) == MPI_SUCCESS) {
    if (list_group(group, g_lists[0], foreign) == size) made.members = g_lists[0];
    g_native.Group_free(&group);
  }
  if (inter != 0) {
    made.flags |= trace::kCommInter;
    if (g_native.Comm_remote_group(comm, &group) == MPI_SUCCESS) {
      made.remote_ranks = list_group(group, g_lists[1], foreign);
      if (made.remote_ranks > 0) made.remote = g_lists[1];
      g_native.Group_free(&group);
    }
  }
  if (foreign) {
    made.flags |= trace::kCommForeignMembers;
    made.members = nullptr;
    made.remote = nullptr;
  } else if (made.members == nullptr) {
    made.flags |= trace::kCommMembersCut;
  }
  return add_comm(made);
}

/// MPI_COMM_WORLD and MPI_COMM_SELF; the id of the first. `flags`: kCommAdopted after a fork.
inline std::uint32_t register_world(std::uint8_t flags) noexcept {
  const std::uint32_t world =
      register_comm(g_constants.world, OpKind::kInit, nullptr, nullptr, "MPI_COMM_WORLD", flags);
  register_comm(g_constants.self, OpKind::kInit, nullptr, nullptr, "MPI_COMM_SELF", flags);
  return world;
}

/// After MPI_Init: what the rest of the trace refers to.
inline std::uint32_t begin_trace(std::uint8_t flags) noexcept {
  if (flags == 0) {
    find_predefined();
    int value = 0;
    if (g_native.Comm_rank(g_constants.world, &value) == MPI_SUCCESS) g_world_rank = value;
    if (g_native.Comm_size(g_constants.world, &value) == MPI_SUCCESS) g_world_ranks = value;
  }
  register_predefined();
  const std::uint32_t world = register_world(flags);
  trace::FileHeader* header = g_recorder.map.header;
  header->job_ranks = g_world_ranks;
  header->job_rank = g_world_rank;
  write_text(trace::SideKind::kLibrary, 0, g_library_version);
  return world;
}

}  // namespace lockstep::shim::mpi::LOCKSTEP_BACKEND
