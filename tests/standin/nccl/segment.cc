// Memory files, their layout, and the lock and wake-ups of the processes that share one.
#include "nccl/segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

namespace lockstep::standin {
namespace {

using nccl::ncclUniqueId;

constexpr std::uint64_t kMagic = 0x316e696474736b6c;  // "lkstdin1"

struct IdContent {
  std::uint64_t magic;
  std::int32_t pid;
  std::int32_t descriptor;
  std::uint64_t nonce[2];
};
static_assert(sizeof(IdContent) <= sizeof(ncclUniqueId));

IdContent content_of(const ncclUniqueId& id) {
  IdContent content;
  std::memcpy(&content, id.internal, sizeof content);
  return content;
}

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

void set_up(Header& header, int ranks, std::uint64_t hash) {
  header.ranks = ranks;
  header.hash = hash;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&header.mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

}  // namespace

bool make_unique_id(ncclUniqueId& id) {
  IdContent content{kMagic, getpid(), memfd_create("lockstep-rehearse", MFD_CLOEXEC), {}};
  if (content.descriptor < 0) return false;
  if (getrandom(content.nonce, sizeof content.nonce, 0) != sizeof content.nonce ||
      ftruncate(content.descriptor, 4096) != 0) {
    close(content.descriptor);
    return false;
  }
  if (pwrite(content.descriptor, content.nonce, sizeof content.nonce, 4096 - sizeof content.nonce) < 0) return false;
  id = {};
  std::memcpy(id.internal, &content, sizeof content);
  return true;
}

void forget_unique_id(const ncclUniqueId& id) {
  const IdContent content = content_of(id);
  if (content.magic != kMagic || content.pid != getpid()) return;
  // The number may have been used anew since: only the file with our mark is closed.
  std::uint64_t nonce[2] = {};
  if (pread(content.descriptor, nonce, sizeof nonce, 4096 - sizeof nonce) == sizeof nonce &&
      std::memcmp(nonce, content.nonce, sizeof nonce) == 0)
    close(content.descriptor);
}

std::uint64_t hash_of(const ncclUniqueId& id) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : id.internal) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

Segment* Segment::open(const ncclUniqueId& id, int ranks, std::string& why) {
  const IdContent content = content_of(id);
  if (content.magic != kMagic) {
    why = "the unique id was not made by ncclGetUniqueId of the stand-in";
    return nullptr;
  }
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", content.pid, content.descriptor);
  const int descriptor = ::open(path, O_RDWR | O_CLOEXEC);
  std::uint64_t nonce[2] = {};
  if (descriptor < 0 || pread(descriptor, nonce, sizeof nonce, 4096 - sizeof nonce) != sizeof nonce ||
      std::memcmp(nonce, content.nonce, sizeof nonce) != 0) {
    if (descriptor >= 0) close(descriptor);
    why = "process " + std::to_string(content.pid) + ", which made the unique id, has gone";
    return nullptr;
  }
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t slots = 4096;  // behind the header
  const std::size_t channels = slots + aligned(n * sizeof(Slot));
  const std::size_t chunks = channels + aligned(n * n * sizeof(Channel));
  const std::size_t fifos = chunks + n * kChunkBytes;
  const std::size_t eagers = fifos + n * n * kFifoBytes;
  const std::size_t bytes = eagers + n * n * kEagerSlots * kEagerBytes;
  // Sparse, and never made smaller: ranks that state another size see zeroes, not a fault.
  const off_t present = lseek(descriptor, 0, SEEK_END);
  if (present < static_cast<off_t>(bytes) && fallocate(descriptor, 0, static_cast<off_t>(bytes) - 1, 1) != 0) {
    close(descriptor);
    why = std::string("no room for the shared memory of a communicator: ") + std::strerror(errno);
    return nullptr;
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (memory == MAP_FAILED) {
    close(descriptor);
    why = std::string("cannot map the shared memory of a communicator: ") + std::strerror(errno);
    return nullptr;
  }
  auto* segment = new Segment;
  auto* base = static_cast<std::byte*>(memory);
  segment->descriptor_ = descriptor;
  segment->bytes_ = bytes;
  segment->header_ = static_cast<Header*>(memory);
  segment->slots_ = reinterpret_cast<Slot*>(base + slots);           // NOLINT
  segment->channels_ = reinterpret_cast<Channel*>(base + channels);  // NOLINT
  segment->chunks_ = base + chunks;
  segment->fifos_ = base + fifos;
  segment->eagers_ = base + eagers;
  Header& header = *segment->header_;
  std::uint32_t untouched = 0;
  if (header.state.compare_exchange_strong(untouched, 1)) {
    set_up(header, ranks, hash_of(id));
    header.state.store(2);
  }
  while (header.state.load() != 2) usleep(100);
  return segment;
}

Segment::~Segment() {
  munmap(header_, bytes_);
  close(descriptor_);
}

std::uint64_t Segment::append(const Put& put, const void* data) const {
  const std::uint64_t place = std::max<std::uint64_t>(header_->heap, aligned(bytes_));
  const bool written = pwrite(descriptor_, &put, sizeof put, static_cast<off_t>(place)) == sizeof put &&
                       (put.bytes == 0 || std::cmp_equal(pwrite(descriptor_, data, put.bytes, static_cast<off_t>(place + sizeof put)), put.bytes));
  if (!written) return 0;
  header_->heap = place + aligned(sizeof put + put.bytes);
  return place;
}

void Segment::link(std::uint64_t place, std::uint64_t next) const {
  if (pwrite(descriptor_, &next, sizeof next, static_cast<off_t>(place + offsetof(Put, next))) != sizeof next) return;
}

Put Segment::put_at(std::uint64_t place) const {
  Put put;
  if (pread(descriptor_, &put, sizeof put, static_cast<off_t>(place)) != sizeof put) put = {};
  return put;
}

void Segment::payload(std::uint64_t place, std::byte* to, std::size_t bytes) const {
  if (!std::cmp_equal(pread(descriptor_, to, bytes, static_cast<off_t>(place + sizeof(Put))), bytes)) return;
  fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(place), static_cast<off_t>(aligned(sizeof(Put) + bytes)));
}

void Segment::lock() const {
  // A process killed inside leaves counters that are each whole: the others go on, and hang as they would.
  if (pthread_mutex_lock(&header_->mutex) == EOWNERDEAD) pthread_mutex_consistent(&header_->mutex);
}

void Segment::unlock() const { pthread_mutex_unlock(&header_->mutex); }

void Segment::changed() const {
  header_->generation.fetch_add(1);
  syscall(SYS_futex, &header_->generation, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void Segment::await_change(std::uint32_t generation) const {
  const timespec while_long{0, 200'000'000};  // a process killed between change and wake-up
  syscall(SYS_futex, &header_->generation, FUTEX_WAIT, generation, &while_long, nullptr, 0);
}

}  // namespace lockstep::standin
