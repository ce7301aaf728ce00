// Makes communicators: hosts meet at a unique id, or at the next control call of a parent.
#include "nccl/communicator.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "nccl/report.h"

namespace lockstep::standin {
namespace {

using namespace nccl;

std::mutex g_mutex;
std::set<ncclComm*>& communicators() {
  static auto* all = new std::set<ncclComm*>;
  return *all;
}
std::map<int, int>& made_on_device() {
  static auto* all = new std::map<int, int>;
  return *all;
}
thread_local std::string* t_last_error = nullptr;

using HooksFunction = const CudaHooks* (*)();

/// The stand-in for the CUDA runtime that the program has loaded, else the one beside this library.
HooksFunction find_hooks() {
  constexpr const char* kName = "lockstep_standin_cuda_hooks";
  if (void* symbol = dlsym(RTLD_DEFAULT, kName)) return reinterpret_cast<HooksFunction>(symbol);
  for (const int mode : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW}) {
    for (const char* name : {"libcudart.so.13", "libcudart.so.12"}) {
      std::string path = name;
      if (void* library = dlopen(path.c_str(), mode))
        if (void* symbol = dlsym(library, kName)) return reinterpret_cast<HooksFunction>(symbol);
    }
  }
  Dl_info here;
  if (dladdr(reinterpret_cast<void*>(&find_hooks), &here) != 0) {
    const std::string path(here.dli_fname);
    const std::string beside = path.substr(0, path.rfind('/') + 1) + "libcudart.so.13";
    if (void* library = dlopen(beside.c_str(), RTLD_NOW))
      if (void* symbol = dlsym(library, kName)) return reinterpret_cast<HooksFunction>(symbol);
  }
  return nullptr;
}

}  // namespace

thread_local bool t_is_helper = false;

const CudaHooks& cuda() {
  static const CudaHooks* hooks = [] {
    const HooksFunction function = find_hooks();
    if (function == nullptr) {
      std::fputs(
          "lockstep rehearse: the program uses another CUDA runtime than the stand-in (a static one?): it cannot be "
          "rehearsed\n",
          stderr);
      _exit(125);
    }
    return function();
  }();
  return *hooks;
}

ncclComm* find_communicator(ncclComm* handle) {
  const std::lock_guard lock(g_mutex);
  return communicators().contains(handle) ? handle : nullptr;
}

ncclResult_t check_communicator(ncclComm* handle) {
  if (find_communicator(handle) == nullptr)
    return fail(ncclInvalidArgument, handle == nullptr ? "the communicator is NULL" : "no such communicator");
  if (handle->state.load() == ncclInProgress)
    return fail(ncclInvalidArgument, "the communicator is used before ncclCommGetAsyncError said ncclSuccess", handle);
  if (handle->state.load() != ncclSuccess) return static_cast<ncclResult_t>(handle->state.load());
  if (handle->revoked) return fail(ncclInvalidUsage, "the communicator has been revoked", handle);
  return ncclSuccess;
}

ncclComm* new_communicator(int ranks, int rank) {
  auto* comm = new ncclComm;
  comm->ranks = ranks;
  comm->rank = rank;
  comm->device = cuda().device();
  comm->sends.resize(static_cast<std::size_t>(ranks));
  comm->receives.resize(static_cast<std::size_t>(ranks));
  comm->state = ncclInProgress;
  const std::lock_guard lock(g_mutex);
  comm->index = made_on_device()[comm->device]++;
  communicators().insert(comm);
  return comm;
}

void free_communicator(ncclComm* comm) {
  const std::lock_guard lock(g_mutex);
  communicators().erase(comm);
  // Neither the handle nor its memory goes: captured graphs may still refer to it.
  comm->magic = 0;
}

ncclResult_t fail(ncclResult_t result, const std::string& text, ncclComm*) {
  if (t_last_error == nullptr) t_last_error = new std::string;
  *t_last_error = text;
  return result;
}

const char* last_error() {
  return t_last_error == nullptr ? "" : t_last_error->c_str();
}

std::vector<int> all_ranks(const ncclComm& comm) {
  std::vector<int> ranks;
  for (int rank = 0; rank < comm.ranks; ++rank) ranks.push_back(rank);
  return ranks;
}

ncclResult_t join(ncclComm& comm, const ncclUniqueId& id) {
  std::string why;
  Segment* segment = Segment::open(id, comm.ranks, why);
  if (segment == nullptr) return fail(ncclSystemError, why, &comm);
  const Header& header = segment->header();
  const bool other_size = header.ranks != comm.ranks;
  segment->lock();
  // A rank that is there twice, and another size, keep everyone from meeting, as with the real library.
  const bool twice = !other_size && segment->slot(comm.rank).joined != 0;
  if (!other_size && !twice) {
    segment->slot(comm.rank).joined = 1;
    segment->slot(comm.rank).pid = getpid();
    ++segment->header().joined;
  }
  segment->unlock();
  segment->changed();
  if (other_size || twice)
    report_bad_join(*segment, comm, other_size ? "states another number of ranks than the first" : "is there twice");
  const auto complete = [&] { return !other_size && !twice && header.joined >= header.ranks; };
  const auto describe = [&] {
    std::string missing;
    for (int rank = 0; !other_size && rank < header.ranks; ++rank)
      if (segment->slot(rank).joined == 0) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    return "rank " + std::to_string(comm.rank) + " of " + std::to_string(comm.ranks) + " in ncclCommInitRank, " +
           (other_size ? "with another number of ranks than the others"
                       : twice ? "where this rank is there twice" : "without ranks " + missing);
  };
  const bool made = wait_until(*segment, comm.aborted, true, complete, describe);
  forget_unique_id(id);
  comm.hash = header.hash;
  comm.segment = segment;
  return made ? ncclSuccess : fail(ncclInternalError, "aborted", &comm);
}

ncclResult_t meet(ncclComm& parent, const ControlCall& call, const std::vector<int>& who, std::vector<ControlCall>& calls) {
  const Segment& segment = *parent.segment;
  const std::uint64_t number = ++parent.controls;
  const auto waiting_for = [&](std::uint64_t Slot::* counter, std::uint64_t least) {
    std::vector<int> missing;
    for (const int rank : who)
      if (segment.slot(rank).*counter < least) missing.push_back(rank);
    return missing;
  };
  const auto describe = [&] { return describe_meeting(parent, call, waiting_for(&Slot::control_arrived, number)); };
  // What the others said at the one before must have been read.
  if (!wait_until(segment, parent.aborted, true, [&] { return waiting_for(&Slot::control_done, number - 1).empty(); }, describe))
    return fail(ncclInternalError, "aborted", &parent);
  segment.lock();
  segment.slot(parent.rank).control = call;
  segment.slot(parent.rank).control_arrived = number;
  segment.unlock();
  segment.changed();
  if (!wait_until(segment, parent.aborted, true, [&] { return waiting_for(&Slot::control_arrived, number).empty(); }, describe))
    return fail(ncclInternalError, "aborted", &parent);
  segment.lock();
  bool agree = true;
  calls.clear();
  for (const int rank : who) {
    calls.push_back(segment.slot(rank).control);
    agree = agree && calls.back().kind == call.kind && calls.back().agreed == call.agreed;
  }
  segment.unlock();
  if (!agree) {
    report_control_mismatch(parent, who, calls);
    wait_until(segment, parent.aborted, true, [] { return false; }, describe);
    return fail(ncclInternalError, "aborted", &parent);
  }
  return ncclSuccess;
}

void offer_id(ncclComm& parent, const ncclUniqueId& id) {
  const Segment& segment = *parent.segment;
  segment.lock();
  segment.slot(parent.rank).offer = id;
  segment.slot(parent.rank).offered = parent.controls;
  segment.unlock();
  segment.changed();
}

ncclResult_t take_id(ncclComm& parent, int from, ncclUniqueId& id) {
  const Segment& segment = *parent.segment;
  const Slot& slot = segment.slot(from);
  const auto describe = [&] { return "waits for rank " + std::to_string(from) + " to begin a communicator"; };
  if (!wait_until(segment, parent.aborted, true, [&] { return slot.offered >= parent.controls; }, describe))
    return fail(ncclInternalError, "aborted", &parent);
  segment.lock();
  id = slot.offer;
  segment.unlock();
  return ncclSuccess;
}

void end_meeting(ncclComm& parent) {
  const Segment& segment = *parent.segment;
  segment.lock();
  segment.slot(parent.rank).control_done = parent.controls;
  segment.unlock();
  segment.changed();
}

}  // namespace lockstep::standin
