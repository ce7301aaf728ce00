#include "trace_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>

namespace lockstep::shim {
namespace {

constexpr std::uint64_t kSmallestRing = 2 * trace::kBlockBytes;
constexpr std::uint64_t kPage = 4096;
/// Start-up may cost the host 20 ms in all; what is not touched by then is touched as its blocks are opened.
constexpr std::uint64_t kTouchBudgetNs = 8'000'000;

struct Layout {
  std::uint64_t ring_bytes = 0;
  std::uint32_t comm_entries = 0;
  std::uint64_t side_offset = 0;
  std::uint64_t side_bytes = 0;
  std::uint64_t ring_offset = 0;
  std::uint64_t file_bytes = 0;
};

constexpr std::uint64_t clamp(std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  return value < low ? low : value > high ? high : value;
}
constexpr std::uint64_t round_up(std::uint64_t value) { return (value + kPage - 1) / kPage * kPage; }

constexpr Layout layout_for(std::uint64_t ring_bytes) {
  Layout layout;
  layout.ring_bytes = ring_bytes / trace::kBlockBytes * trace::kBlockBytes;
  layout.comm_entries = static_cast<std::uint32_t>(clamp(ring_bytes / trace::kBlockBytes, 32, 512));
  layout.side_offset = round_up(trace::kHeaderBytes + layout.comm_entries * sizeof(trace::CommEntry));
  layout.side_bytes = round_up(clamp(ring_bytes / 16, 64 << 10, 64 << 20));
  layout.ring_offset = layout.side_offset + layout.side_bytes;
  layout.file_bytes = layout.ring_offset + layout.ring_bytes;
  return layout;
}

// What the file may take: 5 % of the free space, and what the process itself may write. Past RLIMIT_FSIZE the
// kernel would send SIGXFSZ to the host.
std::uint64_t allowed_bytes(int file) noexcept {
  std::uint64_t allowed = ~std::uint64_t{0};
  struct statfs space {};
  if (fstatfs(file, &space) == 0) {
    allowed = static_cast<std::uint64_t>(space.f_bavail) * static_cast<std::uint64_t>(space.f_bsize) / 20;
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < allowed) {
    allowed = limit.rlim_cur;
  }
  return allowed;
}

// Blocks on the disk for every byte: a hole in a mapped file is SIGBUS in the host when the disk is full.
// fallocate(2) itself, for glibc's posix_fallocate falls back to reading and writing bytes of a file that
// others may map.
bool reserve(int file, std::uint64_t bytes) noexcept {
  if (fallocate(file, 0, 0, static_cast<off_t>(bytes)) == 0) return true;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return false;
  static const char zeros[16 * 1024] = {};
  for (std::uint64_t at = 0; at < bytes;) {
    const std::uint64_t left = bytes - at;
    const ssize_t wrote =
        pwrite(file, zeros, left < sizeof zeros ? left : sizeof zeros, static_cast<off_t>(at));
    if (wrote <= 0) return false;
    at += static_cast<std::uint64_t>(wrote);
  }
  return true;
}

// The first write to a page costs a fault, on some hypervisors ten times that even after MADV_POPULATE_WRITE:
// pay here, not in the call path.
void touch_pages(std::byte* base, std::uint64_t bytes) noexcept {
  const std::uint64_t until = unix_ns() + kTouchBudgetNs;
  for (std::uint64_t at = 0; at < bytes; at += kPage) {
    *reinterpret_cast<volatile unsigned char*>(base + at) = 0;
    if (at % (64 * kPage) == 0 && unix_ns() > until) return;
  }
}

}  // namespace

const char* create_trace_file(const Config& config, const TracePlace& place, const Anchor& started,
                              std::uint32_t initial_state, TraceMap& map) noexcept {
  const int file = open(place.file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                        static_cast<mode_t>(config.file_mode));
  if (file < 0) return errno == EEXIST ? "the trace file exists already" : "cannot make the trace file";
  const auto give_up = [&](const char* reason) noexcept {
    close(file);
    unlink(place.file);
    return reason;
  };
  // The umask may have taken what LOCKSTEP_MODE asks for.
  if (config.file_mode != 0600) fchmod(file, static_cast<mode_t>(config.file_mode));

  const std::uint64_t allowed = allowed_bytes(file);
  std::uint64_t ring = config.ring_bytes;
  Layout layout = layout_for(ring);
  bool reserved = false;
  while (!reserved) {
    if (layout.file_bytes <= allowed && reserve(file, layout.file_bytes)) {
      reserved = true;
      break;
    }
    if (ring <= kSmallestRing) return give_up("no room for a trace file");
    ring = clamp(ring / 2, kSmallestRing, ring);
    layout = layout_for(ring);
  }

  void* mapped = mmap(nullptr, layout.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return give_up("cannot map the trace file");
  close(file);
  madvise(mapped, layout.file_bytes, MADV_HUGEPAGE);
  madvise(mapped, layout.file_bytes,
          MADV_DONTDUMP);  // the trace is on disk; core files stay as large as they were

  map.base = static_cast<std::byte*>(mapped);
  map.bytes = layout.file_bytes;
  map.comm_entries = reinterpret_cast<trace::CommEntry*>(map.base + trace::kHeaderBytes);
  map.comm_entry_count = layout.comm_entries;
  map.side = map.base + layout.side_offset;
  map.side_bytes = layout.side_bytes;
  map.ring = map.base + layout.ring_offset;
  map.block_count = static_cast<std::uint32_t>(layout.ring_bytes / trace::kBlockBytes);
  touch_pages(map.base, layout.file_bytes);

  const Anchor now = make_anchor();
  auto* header = new (map.base) trace::FileHeader;
  header->version = trace::kVersion;
  header->min_reader = trace::kMinReader;
  header->header_bytes = trace::kHeaderBytes;
  header->record_bytes = trace::kRecordBytes;
  header->file_bytes = layout.file_bytes;
  header->comm_table_offset = trace::kHeaderBytes;
  header->comm_entry_bytes = sizeof(trace::CommEntry);
  header->comm_entry_count = layout.comm_entries;
  header->side_offset = layout.side_offset;
  header->side_bytes = layout.side_bytes;
  header->ring_offset = layout.ring_offset;
  header->block_bytes = trace::kBlockBytes;
  header->block_count = map.block_count;
  header->ticks_per_second = ticks_per_second();
  header->pid = getpid();
  header->local_rank = config.local_rank;
  header->start_unix_ns = started.at_unix_ns;
  header->start_ticks = started.at_ticks;
  header->created_unix_ns = now.at_unix_ns;
  header->created_ticks = now.at_ticks;
  header->state = initial_state;
  header->job_rank = config.rank;
  header->job_ranks = config.ranks;
  map.header = header;
  std::atomic_ref(header->magic).store(trace::kMagic, std::memory_order_release);
  return nullptr;
}

}  // namespace lockstep::shim
