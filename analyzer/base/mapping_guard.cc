// The handler may run at any instruction: the ranges are a list that only grows, of words that are stored at once.
#include "base/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

namespace lockstep {

/// Entries are used again and never freed. begin 0: free.
struct MappingGuard::Range {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> hit{false};
  Range* next = nullptr;
  Range* next_free = nullptr;  // for those that change the list
};

struct MappingGuard::Ranges {
  static inline std::atomic<Range*> all{nullptr};
  static inline std::mutex changing;
  static inline Range* free = nullptr;
  static inline struct sigaction before {};

  static void on_fault(int signal, siginfo_t* info, void* context) {
    const int error = errno;
    const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
    for (Range* range = all.load(std::memory_order_acquire); range != nullptr; range = range->next) {
      const std::uintptr_t begin = range->begin.load(std::memory_order_acquire);
      const std::uintptr_t end = range->end.load(std::memory_order_relaxed);
      if (begin == 0 || at < begin || at >= end) continue;
      // All behind it is gone as well.
      const std::uintptr_t page = at - (at - begin) % page_bytes;
      constexpr int kZeros = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
      if (::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ, kZeros, -1, 0) == MAP_FAILED) break;
      range->hit.store(true, std::memory_order_release);
      errno = error;
      return;
    }
    errno = error;
    pass_on(signal, info, context);
  }

  /// Returning to the instruction raises the signal again: without a handler it then ends the program, as it should.
  static void pass_on(int signal, siginfo_t* info, void* context) {
    if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
      before.sa_sigaction(signal, info, context);
    } else if ((before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
      before.sa_handler(signal);
    } else {
      ::signal(signal, SIG_DFL);
    }
  }

  static inline std::uintptr_t page_bytes = 4096;
};

MappingGuard::MappingGuard(const void* begin, std::size_t bytes) {
  const std::lock_guard lock(Ranges::changing);
  if (Ranges::all.load(std::memory_order_relaxed) == nullptr) {
    Ranges::page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = &Ranges::on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &Ranges::before);
  }
  if (Ranges::free != nullptr) {
    range_ = std::exchange(Ranges::free, Ranges::free->next_free);
  } else {
    range_ = new Range;
    range_->next = Ranges::all.load(std::memory_order_relaxed);
    Ranges::all.store(range_, std::memory_order_release);
  }
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  range_->hit.store(false, std::memory_order_relaxed);
  range_->end.store(first + bytes, std::memory_order_relaxed);
  range_->begin.store(first, std::memory_order_release);
}

MappingGuard::MappingGuard(MappingGuard&& other) noexcept : range_(std::exchange(other.range_, nullptr)) {}

MappingGuard& MappingGuard::operator=(MappingGuard&& other) noexcept {
  std::swap(range_, other.range_);
  return *this;
}

MappingGuard::~MappingGuard() {
  if (range_ == nullptr) return;
  const std::lock_guard lock(Ranges::changing);
  range_->begin.store(0, std::memory_order_release);
  range_->next_free = std::exchange(Ranges::free, range_);
}

bool MappingGuard::was_hit() const { return range_ != nullptr && range_->hit.load(std::memory_order_acquire); }

}  // namespace lockstep
