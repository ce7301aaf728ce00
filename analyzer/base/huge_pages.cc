// See the header.
#include "base/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace lockstep {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

}  // namespace

void* allocate_huge_pages(std::size_t bytes) {
  if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
  const std::size_t wanted = whole_pages(bytes);
  // A page more than is wanted, and the ends that do not fill one go back.
  void* base = ::mmap(nullptr, wanted + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  char* const mapped = static_cast<char*>(base);
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(base) % kHugePage) % kHugePage;
  if (before != 0) ::munmap(mapped, before);
  if (before != kHugePage) ::munmap(mapped + before + wanted, kHugePage - before);
#ifdef MADV_HUGEPAGE
  // A last page of which less than half is used costs more memory than it saves faults.
  const std::size_t huge = (bytes + kHugePage / 2) / kHugePage * kHugePage;
  ::madvise(mapped + before, huge, MADV_HUGEPAGE);
#endif
  return mapped + before;
}

void free_huge_pages(void* begin, std::size_t bytes) noexcept { ::munmap(begin, whole_pages(bytes)); }

}  // namespace lockstep
