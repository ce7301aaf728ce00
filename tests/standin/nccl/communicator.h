// One rank's handle of a communicator, and the meetings of hosts that make and end communicators.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hooks.h"
#include "lockstep/op_kind.h"
#include "nccl/api.h"
#include "nccl/segment.h"

/// What a ncclComm_t points to.
struct lockstep::nccl::ncclComm {
  static constexpr std::uint64_t kMagic = 0x6d6d6f636e6c6b73;
  std::uint64_t magic = kMagic;
  standin::Segment* segment = nullptr;  ///< null until the communicator is made
  int rank = 0;
  int ranks = 0;
  int device = 0;
  int index = 0;  ///< how-manieth of this process and device, for fault knobs and messages
  std::uint64_t hash = 0;
  bool blocking = true;
  std::atomic<int> state{ncclSuccess};  ///< ncclInProgress until it is made; else what became of that
  std::atomic<bool> aborted{false};
  bool revoked = false;
  bool finalized = false;

  // Of the threads that issue.
  standin::Position last_unit{};
  std::atomic<std::uint64_t> issued_calls{0};  ///< collectives, for fault knobs
  std::atomic<int> outstanding{0};             ///< units issued and not done
  std::uint64_t controls = 0;
  struct Window {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
  };
  std::vector<Window> windows{};  ///< in the order of registration, which is the same on all ranks
  std::vector<std::vector<char>> scalars{};  ///< of the operators made by ncclRedOpCreatePreMulSum
  std::vector<int> scalar_types{};           ///< -1: destroyed

  // Of what is run, one unit at a time.
  std::uint64_t position = 0;  ///< collectives begun
  std::uint64_t chunks = 0;    ///< of those done
  std::vector<std::uint64_t> sends{};
  std::vector<std::uint64_t> receives{};
};

namespace lockstep::standin {

using nccl::ncclComm;
using nccl::ncclConfig_t;
using nccl::ncclResult_t;
using nccl::ncclUniqueId;

const CudaHooks& cuda();

/// Null where `handle` is no communicator.
ncclComm* find_communicator(ncclComm* handle);
/// ncclInvalidArgument where it is none, or not ready.
ncclResult_t check_communicator(ncclComm* handle);
ncclComm* new_communicator(int ranks, int rank);
void free_communicator(ncclComm* comm);

/// Remembers `text` for ncclGetLastError.
ncclResult_t fail(ncclResult_t result, const std::string& text, ncclComm* comm = nullptr);
const char* last_error();  ///< of this thread, whatever the communicator, as the real library has it

/// Meets all ranks of the id and sets `comm` up. Blocks.
ncclResult_t join(ncclComm& comm, const ncclUniqueId& id);
/// Meets the ranks of `parent` in `who` at its next control call. Blocks. Success: all made the same call; `calls` are theirs.
ncclResult_t meet(ncclComm& parent, const ControlCall& call, const std::vector<int>& who, std::vector<ControlCall>& calls);
/// Gives an id to the others of the control call under way, takes the one of rank `from`, and ends the control call.
void offer_id(ncclComm& parent, const ncclUniqueId& id);
ncclResult_t take_id(ncclComm& parent, int from, ncclUniqueId& id);
void end_meeting(ncclComm& parent);

std::vector<int> all_ranks(const ncclComm& comm);

/// Set in threads that the library starts for calls that block.
extern thread_local bool t_is_helper;

/// Waits until `ready`, which is asked with the segment locked. False: the communicator was aborted meanwhile.
template <class Ready, class Describe>
bool wait_until(const Segment& segment, const std::atomic<bool>& aborted, bool host, Ready ready, Describe describe) {
  segment.lock();
  if (ready()) {
    segment.unlock();
    return true;
  }
  std::uint32_t generation = segment.header().generation.load();
  segment.unlock();
  struct Question {
    const Segment* segment;
    const std::atomic<bool>* aborted;
    Ready* ready;
    Describe* describe;
  } question{&segment, &aborted, &ready, &describe};
  Wait wait;
  wait.argument = &question;
  wait.host = host;
  wait.counted = !t_is_helper;
  wait.ready = [](void* argument) {
    const auto& asked = *static_cast<Question*>(argument);
    if (asked.aborted->load()) return true;
    asked.segment->lock();
    const bool yes = (*asked.ready)();
    asked.segment->unlock();
    return yes;
  };
  wait.describe = [](void* argument, char* text, std::size_t size) {
    const auto& asked = *static_cast<Question*>(argument);
    asked.segment->lock();
    const std::string said = (*asked.describe)();
    asked.segment->unlock();
    text[said.copy(text, size - 1)] = '\0';
  };
  cuda().wait_begin(&wait);
  bool done = false;
  while (!done && !aborted.load()) {
    segment.await_change(generation);
    segment.lock();
    generation = segment.header().generation.load();
    done = ready();
    segment.unlock();
  }
  cuda().wait_end(&wait);
  return done;
}

}  // namespace lockstep::standin
