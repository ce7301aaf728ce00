// What the ranks of one communicator share: a memory file that the unique id names by process and descriptor. It has no name in
// the file system, so nothing is left behind however the processes end.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "nccl/api.h"

namespace lockstep::standin {

inline constexpr std::size_t kChunkBytes = std::size_t{64} << 10;   ///< of each rank, for collectives
inline constexpr std::size_t kFifoBytes = std::size_t{64} << 10;    ///< of each pair of ranks and direction
inline constexpr std::size_t kEagerSlots = 16;
inline constexpr std::size_t kEagerBytes = std::size_t{16} << 10;   ///< the most that an eager message may have
inline constexpr int kMaxRanks = 1024;

/// The arguments of a collective on which all ranks must agree.
struct Signature {
  std::int32_t kind = 0;  ///< OpKind
  std::int32_t datatype = 0;
  std::int32_t redop = 0;
  std::int32_t root = -1;
  std::uint64_t count = 0;
  std::uint64_t send_bytes = 0;  ///< what this rank puts in: differs with the root
};

/// A call by which hosts meet: split, finalize ...
struct ControlCall {
  std::int32_t kind = 0;  ///< OpKind
  std::int32_t color = 0;
  std::int32_t key = 0;
  std::uint64_t agreed = 0;  ///< hash of what must be equal
};

struct Slot {
  std::int32_t joined = 0;
  std::int32_t pid = 0;
  std::uint64_t arrived = 0;  ///< collectives begun
  std::uint64_t staged = 0;   ///< chunks written, over all collectives
  std::uint64_t consumed = 0;
  Signature signature{};
  std::uint64_t control_arrived = 0;
  std::uint64_t control_done = 0;
  ControlCall control{};
  std::uint64_t offered = 0;  ///< number of the control call that `offer` belongs to, from 1
  nccl::ncclUniqueId offer{};
};

/// Messages from one rank to another, in order.
struct Channel {
  std::uint64_t sends_open = 0;   ///< rendezvous sends whose turn has come, eager ones included
  std::uint64_t sends_done = 0;
  std::uint64_t receives_open = 0;
  std::uint64_t receives_done = 0;
  std::uint64_t send_bytes = 0;   ///< of the open ones
  std::uint64_t receive_bytes = 0;
  std::uint64_t written = 0;  ///< of the open message
  std::uint64_t read = 0;
  std::uint64_t eager_number[kEagerSlots] = {};  ///< 1 + number of the message in it; 0: free
  std::uint64_t eager_bytes[kEagerSlots] = {};
  std::uint64_t signals = 0;        ///< sent, and
  std::uint64_t signals_taken = 0;  ///< waited for
  std::uint64_t next_signal = 0;    ///< places of those between, see Segment::append; 0: there is none
  std::uint64_t last_signal = 0;
};

/// A signal under way, with what is put before it.
struct Put {
  std::uint64_t next = 0;  ///< place of the next one between these ranks
  std::uint64_t window = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct Header {
  std::atomic<std::uint32_t> state;  ///< 0 = nobody has been here, 1 = being set up, 2 = ready
  std::int32_t ranks;
  std::int32_t joined;
  std::int32_t reported;  ///< a mismatch has been printed
  std::uint64_t hash;
  std::uint64_t heap;  ///< end of what stands behind the mapped part: signals with their data
  pthread_mutex_t mutex;
  std::atomic<std::uint32_t> generation;  ///< counts changes; what waits for one waits on it
};

/// A new id whose memory file lives in this process. False: no memory file could be made.
bool make_unique_id(nccl::ncclUniqueId& id);

class Segment {
 public:
  /// Null, with a reason, where the id is not of this stand-in or its process has gone.
  static Segment* open(const nccl::ncclUniqueId& id, int ranks, std::string& why);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  Header& header() const { return *header_; }
  int ranks() const { return header_->ranks; }
  Slot& slot(int rank) const { return slots_[rank]; }
  Channel& channel(int from, int to) const { return channels_[from * ranks() + to]; }
  std::byte* chunk(int rank) const { return chunks_ + static_cast<std::size_t>(rank) * kChunkBytes; }
  std::byte* fifo(int from, int to) const { return fifos_ + pair(from, to) * kFifoBytes; }
  std::byte* eager(int from, int to, std::size_t slot) const {
    return eagers_ + (pair(from, to) * kEagerSlots + slot) * kEagerBytes;
  }

  // With the lock held. A place is an offset in the file behind the mapped part, which grows.
  std::uint64_t append(const Put& put, const void* data) const;  ///< 0: no room
  void link(std::uint64_t place, std::uint64_t next) const;
  Put put_at(std::uint64_t place) const;
  void payload(std::uint64_t place, std::byte* to, std::size_t bytes) const;

  void lock() const;
  void unlock() const;
  void changed() const;  ///< wakes all that wait
  /// Waits for a change after `generation`, or a while.
  void await_change(std::uint32_t generation) const;

 private:
  Segment() = default;
  std::size_t pair(int from, int to) const { return static_cast<std::size_t>(from * ranks() + to); }

  int descriptor_ = -1;
  std::size_t bytes_ = 0;
  Header* header_ = nullptr;
  Slot* slots_ = nullptr;
  Channel* channels_ = nullptr;
  std::byte* chunks_ = nullptr;
  std::byte* fifos_ = nullptr;
  std::byte* eagers_ = nullptr;
};

/// The descriptor behind an id that this process made is no longer needed.
void forget_unique_id(const nccl::ncclUniqueId& id);
std::uint64_t hash_of(const nccl::ncclUniqueId& id);

}  // namespace lockstep::standin
