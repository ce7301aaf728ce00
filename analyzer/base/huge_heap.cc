// See the header.
#include "base/huge_heap.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace lockstep {

#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)

namespace {

constexpr int kMostFromHeap = 32 << 20;  // the largest that glibc takes
constexpr int kGrowth = 64 << 20;
constexpr int kKept = 256 << 20;  // what is freed at its end is mostly wanted again

/// 0 where it is not known.
std::uintptr_t end_of_heap() {
  void* const end = ::sbrk(0);
  return end == reinterpret_cast<void*>(-1) ? 0 : reinterpret_cast<std::uintptr_t>(end);
}

std::uintptr_t start_growing() {
  ::mallopt(M_MMAP_THRESHOLD, kMostFromHeap);
  ::mallopt(M_TOP_PAD, kGrowth);
  ::mallopt(M_TRIM_THRESHOLD, kKept);
  return end_of_heap();
}

}  // namespace

void extend_heap_in_huge_pages() noexcept {
  static std::atomic<std::uintptr_t> advised{start_growing()};
  const std::uintptr_t end = end_of_heap();
  const std::uintptr_t before = advised.exchange(end);
  if (before == 0 || end <= before) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t from = before / page * page;
  ::madvise(reinterpret_cast<void*>(from), end - from, MADV_HUGEPAGE);  // a request: that it may fail changes nothing
}

#else

void extend_heap_in_huge_pages() noexcept {}

#endif

}  // namespace lockstep
