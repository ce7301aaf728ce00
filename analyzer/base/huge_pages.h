// Large tables in large pages: a table of 10^8 operations is filled once, and page faults would cost as much as filling it.
#pragma once

#include <cstddef>
#include <memory>

namespace lockstep {

/// Zeroed memory at the start of a large page, which the system is asked to back with such pages. Throws std::bad_alloc.
void* allocate_huge_pages(std::size_t bytes);
void free_huge_pages(void* begin, std::size_t bytes) noexcept;

/// For vectors that may become large; small ones lie where std::allocator puts them.
template <class T>
struct HugePageAllocator {
  using value_type = T;
  static constexpr std::size_t kLargeBytes = std::size_t{4} << 20;

  HugePageAllocator() = default;
  template <class U>
  explicit(false) HugePageAllocator(const HugePageAllocator<U>&) {}

  T* allocate(std::size_t count) {
    if (count < kLargeBytes / sizeof(T)) return std::allocator<T>().allocate(count);
    return static_cast<T*>(allocate_huge_pages(count * sizeof(T)));
  }
  void deallocate(T* begin, std::size_t count) noexcept {
    if (count < kLargeBytes / sizeof(T)) std::allocator<T>().deallocate(begin, count);
    else free_huge_pages(begin, count * sizeof(T));
  }
  friend bool operator==(HugePageAllocator, HugePageAllocator) = default;
};

}  // namespace lockstep
