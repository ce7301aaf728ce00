// Communicators as they are made and ended.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <thread>

#include "nccl/calls.h"
#include "nccl/group.h"
#include "nccl/report.h"

namespace lockstep::standin::offered {
namespace {

ncclResult_t invalid(const char* what, ncclComm_t comm = nullptr) { return refuse(fail(ncclInvalidArgument, what, comm)); }

/// Fields of a caller's config beyond its own size are not there.
ncclResult_t read_config(const ncclConfig_t* config, bool& blocking) {
  blocking = true;
  if (config == nullptr) return ncclSuccess;
  if (config->magic != kConfigMagic) return invalid("the config is not initialised");
  if (config->size >= offsetof(ncclConfig_t, blocking) + sizeof config->blocking && config->blocking != kUndefinedInt) {
    if (config->blocking != 0 && config->blocking != 1) return invalid("config: blocking is neither 0 nor 1");
    blocking = config->blocking == 1;
  }
  return ncclSuccess;
}

ncclResult_t init(ncclComm_t* made, int ranks, const ncclUniqueId& id, int rank, const ncclConfig_t* config) {
  if (made == nullptr) return invalid("no place for the communicator");
  *made = nullptr;
  if (ranks < 1 || ranks > kMaxRanks || rank < 0 || rank >= ranks) return invalid("no such rank or number of ranks");
  bool blocking = true;
  if (const ncclResult_t result = read_config(config, blocking); result != ncclSuccess) return result;
  ncclComm* comm = new_communicator(ranks, rank);
  comm->blocking = blocking;
  *made = comm;
  const ncclResult_t result = run_blocking(comm, [comm, id] { return join(*comm, id); });
  if (result != ncclSuccess && result != ncclInProgress) *made = nullptr;
  return result;
}

/// Hash of what must be equal on all ranks.
std::uint64_t digest(std::uint64_t hash, std::uint64_t value) { return (hash ^ value) * 0x100000001b3; }

/// Makes a communicator of those `members` of the parent that meet in `call`; `mine`: is this rank among them?
ncclResult_t make_from(ncclComm* parent, ncclComm* comm, const ControlCall& call, const std::vector<int>& who, bool split) {
  std::vector<ControlCall> calls;
  if (const ncclResult_t result = meet(*parent, call, who, calls); result != ncclSuccess) return result;
  if (comm == nullptr) {  // meets the others and is in none of the new ones
    end_meeting(*parent);
    return ncclSuccess;
  }
  std::vector<std::pair<int, int>> members;  // key and rank in the parent
  for (std::size_t i = 0; i < who.size(); ++i)
    if (!split || calls[i].color == call.color) members.emplace_back(split ? calls[i].key : 0, who[i]);
  std::ranges::sort(members);
  const auto self = std::ranges::find(members, parent->rank, &std::pair<int, int>::second);
  comm->ranks = static_cast<int>(members.size());
  comm->rank = static_cast<int>(self - members.begin());
  comm->sends.assign(members.size(), 0);
  comm->receives.assign(members.size(), 0);
  ncclUniqueId id{};
  const int first = members.front().second;
  if (first == parent->rank) {
    if (!make_unique_id(id)) return fail(ncclSystemError, "no memory file could be made", comm);
    offer_id(*parent, id);
  } else if (const ncclResult_t result = take_id(*parent, first, id); result != ncclSuccess) {
    return result;
  }
  const ncclResult_t result = join(*comm, id);
  end_meeting(*parent);
  return result;
}

/// Ready for a call in which hosts meet.
ncclResult_t check_parent(ncclComm_t parent, ncclComm_t* made) {
  if (made == nullptr) return invalid("no place for the communicator");
  *made = nullptr;
  return refuse(check_communicator(parent));
}

ncclComm* child_of(const ncclComm& parent, bool blocking) {
  ncclComm* comm = new_communicator(parent.ranks, parent.rank);
  comm->device = parent.device;
  comm->blocking = blocking;
  return comm;
}

bool is_blocking(const ncclComm& parent, const ncclConfig_t* config, ncclResult_t& result) {
  bool blocking = true;
  result = read_config(config, blocking);
  return config == nullptr ? parent.blocking : blocking;
}

}  // namespace

ncclResult_t CommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return init(comm, ranks, id, rank, nullptr);
}

ncclResult_t CommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return init(comm, ranks, id, rank, config);
}

/// The first id names what the ranks share.
ncclResult_t CommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int ids, ncclUniqueId* id, ncclConfig_t* config) {
  if (ids < 1 || id == nullptr) return invalid("no unique id");
  return init(comm, ranks, *id, rank, config);
}

ncclResult_t CommInitAll(ncclComm_t* comms, int devices, const int* list) {
  if (comms == nullptr || devices < 1 || devices > kMaxRanks) return invalid("no such number of devices");
  for (int i = 0; i < devices; ++i) {
    const int device = list == nullptr ? i : list[i];
    if (device < 0 || device >= cuda().device_count()) return invalid("no such device");
  }
  ncclUniqueId id{};
  if (!make_unique_id(id)) return refuse(fail(ncclSystemError, "no memory file could be made"));
  std::vector<std::thread> threads;
  for (int i = 0; i < devices; ++i) {
    comms[i] = new_communicator(devices, i);
    comms[i]->device = list == nullptr ? i : list[i];
    threads.emplace_back([comm = comms[i], id] {
      t_is_helper = true;
      comm->state = join(*comm, id);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < devices; ++i)
    if (comms[i]->state != ncclSuccess) return refuse(static_cast<ncclResult_t>(comms[i]->state.load()));
  return ncclSuccess;
}

ncclResult_t CommSplit(ncclComm_t parent, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  if (const ncclResult_t result = check_parent(parent, made); result != ncclSuccess) return result;
  if (color < kSplitNoColor) return invalid("no such color", parent);
  ncclResult_t result = ncclSuccess;
  const bool blocking = is_blocking(*parent, config, result);
  if (result != ncclSuccess) return result;
  ncclComm* comm = color == kSplitNoColor ? nullptr : child_of(*parent, blocking);
  *made = comm;
  const ControlCall call{static_cast<std::int32_t>(OpKind::kSplit), color, key, 0};
  return run_blocking(comm, [=] { return make_from(parent, comm, call, all_ranks(*parent), true); });
}

ncclResult_t CommShrink(ncclComm_t parent, int* excluded, int excluded_count, ncclComm_t* made, ncclConfig_t* config, int flags) {
  if (const ncclResult_t result = check_parent(parent, made); result != ncclSuccess) return result;
  if (excluded_count < 1 || excluded == nullptr || excluded_count >= parent->ranks) return invalid("nobody to leave out", parent);
  std::vector<int> survivors = all_ranks(*parent);
  std::uint64_t agreed = 0xcbf29ce484222325;
  for (int i = 0; i < excluded_count; ++i) {
    if (excluded[i] < 0 || excluded[i] >= parent->ranks) return invalid("no such rank to leave out", parent);
    std::erase(survivors, excluded[i]);
    agreed = digest(agreed, static_cast<std::uint64_t>(excluded[i]));
  }
  if (std::ranges::find(survivors, parent->rank) == survivors.end()) return invalid("a rank that is left out calls", parent);
  ncclResult_t result = ncclSuccess;
  const bool blocking = is_blocking(*parent, config, result);
  if (result != ncclSuccess) return result;
  if (flags == kShrinkAbort) {  // what the parent has under way ends here, done or not
    parent->aborted = true;
    parent->segment->changed();
    while (parent->outstanding.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    parent->aborted = false;
  }
  ncclComm* comm = child_of(*parent, blocking);
  *made = comm;
  const ControlCall call{static_cast<std::int32_t>(OpKind::kShrink), 0, 0, digest(agreed, static_cast<std::uint64_t>(flags))};
  return run_blocking(comm, [=] { return make_from(parent, comm, call, survivors, false); });
}

/// Those that are there call it with the parent and rank -1, one of them with the id; those that come, without a parent.
ncclResult_t CommGrow(ncclComm_t parent, int ranks, const ncclUniqueId* id, int rank, ncclComm_t* made, ncclConfig_t* config) {
  if (parent == nullptr) {
    if (id == nullptr) return invalid("no unique id");
    return init(made, ranks, *id, rank, config);
  }
  if (const ncclResult_t result = check_parent(parent, made); result != ncclSuccess) return result;
  if (rank != -1 || ranks <= parent->ranks || ranks > kMaxRanks) return invalid("no such number of ranks", parent);
  ncclResult_t result = ncclSuccess;
  const bool blocking = is_blocking(*parent, config, result);
  if (result != ncclSuccess) return result;
  ncclComm* comm = child_of(*parent, blocking);
  comm->ranks = ranks;
  comm->sends.assign(static_cast<std::size_t>(ranks), 0);
  comm->receives.assign(static_cast<std::size_t>(ranks), 0);
  *made = comm;
  const bool has_id = id != nullptr;
  const ncclUniqueId given = has_id ? *id : ncclUniqueId{};
  const ControlCall call{static_cast<std::int32_t>(OpKind::kGrow), has_id ? 1 : 0, 0, static_cast<std::uint64_t>(ranks)};
  return run_blocking(comm, [=] {
    std::vector<ControlCall> calls;
    if (const ncclResult_t met = meet(*parent, call, all_ranks(*parent), calls); met != ncclSuccess) return met;
    const auto holder = std::ranges::find(calls, 1, &ControlCall::color);
    if (holder == calls.end()) return fail(ncclInvalidArgument, "no rank has the unique id", comm);
    ncclUniqueId shared = given;
    if (has_id) offer_id(*parent, given);
    else if (const ncclResult_t taken = take_id(*parent, static_cast<int>(holder - calls.begin()), shared); taken != ncclSuccess)
      return taken;
    const ncclResult_t joined = join(*comm, shared);
    end_meeting(*parent);
    return joined;
  });
}

ncclResult_t CommWindowRegister(ncclComm_t comm, void* buffer, size_t size, ncclWindow_t* window, int flags) {
  if (const ncclResult_t result = refuse(check_communicator(comm)); result != ncclSuccess) return result;
  if (window == nullptr) return invalid("no place for the window", comm);
  *window = reinterpret_cast<ncclWindow_t>(buffer);  // NOLINT: a window is the memory it was made of
  comm->windows.push_back({static_cast<std::byte*>(buffer), size});
  const ControlCall call{static_cast<std::int32_t>(OpKind::kWindowRegister), 0, 0, static_cast<std::uint64_t>(flags)};
  return run_blocking(nullptr, [=] {
    std::vector<ControlCall> calls;
    const ncclResult_t result = meet(*comm, call, all_ranks(*comm), calls);
    if (result == ncclSuccess) end_meeting(*comm);
    return result;
  });
}

namespace {

/// Waits until what this rank issued on the communicator is done.
void drain(ncclComm& comm) {
  Wait wait;
  wait.argument = &comm;
  const auto drained = [](void* argument) {
    const auto& asked = *static_cast<ncclComm*>(argument);
    return asked.outstanding.load() == 0 || asked.aborted.load();
  };
  wait.ready = drained;
  wait.describe = [](void* argument, char* text, std::size_t size) {
    const auto& asked = *static_cast<ncclComm*>(argument);
    const std::string said = "rank " + std::to_string(asked.rank) + " ends " + communicator_text(asked);
    text[said.copy(text, size - 1)] = '\0';
  };
  wait.counted = !t_is_helper;
  if (drained(&comm)) return;
  cuda().wait_begin(&wait);
  while (!drained(&comm)) std::this_thread::sleep_for(std::chrono::microseconds(200));
  cuda().wait_end(&wait);
}

}  // namespace

ncclResult_t CommFinalize(ncclComm_t comm) {
  if (const ncclResult_t result = refuse(check_communicator(comm)); result != ncclSuccess) return result;
  if (comm->finalized) return invalid("the communicator has been finalized", comm);
  comm->finalized = true;
  const ControlCall call{static_cast<std::int32_t>(OpKind::kFinalize), 0, 0, 0};
  return run_blocking(comm->blocking ? nullptr : comm, [=] {
    drain(*comm);
    std::vector<ControlCall> calls;
    const ncclResult_t result = meet(*comm, call, all_ranks(*comm), calls);
    if (result == ncclSuccess) end_meeting(*comm);
    return result;
  });
}

/// Of this rank alone; waits for what it has under way.
ncclResult_t CommDestroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  if (find_communicator(comm) == nullptr) return invalid("no such communicator");
  drain(*comm);
  free_communicator(comm);
  return ncclSuccess;
}

ncclResult_t CommAbort(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  if (find_communicator(comm) == nullptr) return invalid("no such communicator");
  comm->aborted = true;
  if (comm->segment != nullptr) comm->segment->changed();
  free_communicator(comm);
  return ncclSuccess;
}

/// No more calls but those that end it; what is under way ends.
ncclResult_t CommRevoke(ncclComm_t comm, int flags) {
  if (find_communicator(comm) == nullptr) return invalid("no such communicator");
  if (flags != 0) return invalid("no such flags", comm);
  comm->revoked = true;
  comm->aborted = true;
  if (comm->segment != nullptr) comm->segment->changed();
  return ncclSuccess;
}

namespace {

/// All members wait for each other, and do nothing else here.
ncclResult_t meet_all(ncclComm_t comm, int which) {
  if (const ncclResult_t result = refuse(check_communicator(comm)); result != ncclSuccess) return result;
  const ControlCall call{static_cast<std::int32_t>(OpKind::kBarrier), 0, 0, static_cast<std::uint64_t>(which)};
  return run_blocking(comm->blocking ? nullptr : comm, [=] {
    drain(*comm);
    std::vector<ControlCall> calls;
    const ncclResult_t result = meet(*comm, call, all_ranks(*comm), calls);
    if (result == ncclSuccess) end_meeting(*comm);
    return result;
  });
}

}  // namespace

ncclResult_t CommSuspend(ncclComm_t comm, int) { return meet_all(comm, 1); }
ncclResult_t CommResume(ncclComm_t comm) { return meet_all(comm, 2); }

}  // namespace lockstep::standin::offered
