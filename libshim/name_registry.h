// Datatype and operator handles -> what they mean: the id of a unit in the trace, its hash across ranks, how
// many units.
#pragma once

#include <atomic>
#include <cstdint>

#include "lockstep/trace_record.h"
#include "spin_lock.h"

namespace lockstep::shim {

/// One datatype: `units` times a unit that has an id and a hash. An operator: id and hash.
struct Meaning {
  std::uint64_t hash = 0;  ///< 0 = not known
  std::uint64_t units = 0;
  std::uint32_t unit_bytes = 0;
  std::uint16_t id = 0;
};

/// Handle -> Meaning, open addressing, fixed size. Look-ups run beside an insertion.
template <std::uint32_t kSlots>
class MeaningTable {
 public:
  /// Null for a handle that was never put in.
  const Meaning* find(std::uint64_t handle) const noexcept {
    std::uint64_t at = spread(handle);
    for (std::uint32_t tries = 0; tries < kSlots; ++tries, ++at) {
      const Slot& slot = slots_[at % kSlots];
      const std::uint64_t found = slot.handle.load(std::memory_order_acquire);
      if (found == handle) return &slot.meaning;
      if (found == 0) return nullptr;
    }
    return nullptr;
  }

  /// False when full. Handle 0 is never stored.
  bool put(std::uint64_t handle, const Meaning& meaning) noexcept {
    const SpinGuard guard(lock_);
    Slot* free = nullptr;
    std::uint64_t at = spread(handle);
    for (std::uint32_t tries = 0; tries < kSlots * 3 / 4; ++tries, ++at) {
      Slot& slot = slots_[at % kSlots];
      const std::uint64_t found = slot.handle.load(std::memory_order_relaxed);
      if (found == handle) {
        free = &slot;
        break;
      }
      if (found == kGone && free == nullptr) free = &slot;
      if (found == 0) {
        if (free == nullptr) free = &slot;
        break;
      }
    }
    if (free == nullptr || handle == 0) return false;
    free->meaning = meaning;
    free->handle.store(handle, std::memory_order_release);
    return true;
  }

  void remove(std::uint64_t handle) noexcept {
    const SpinGuard guard(lock_);
    std::uint64_t at = spread(handle);
    for (std::uint32_t tries = 0; tries < kSlots; ++tries, ++at) {
      Slot& slot = slots_[at % kSlots];
      const std::uint64_t found = slot.handle.load(std::memory_order_relaxed);
      if (found == handle) slot.handle.store(kGone, std::memory_order_release);
      if (found == handle || found == 0) return;
    }
  }

  void clear() noexcept {
    lock_.unlock();
    for (Slot& slot : slots_) slot.handle.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t kGone = ~std::uint64_t{0};
  struct Slot {
    std::atomic<std::uint64_t> handle{0};
    Meaning meaning;
  };
  SpinLock lock_;
  Slot slots_[kSlots] = {};
};

extern constinit MeaningTable<4096> g_datatypes;
extern constinit MeaningTable<512> g_redops;

/// Id of the unit (operator) with this hash; writes its side record at the first sight. 0 = no room. Cold.
std::uint16_t intern_datatype(std::uint64_t hash, std::uint32_t bytes, const char* name) noexcept;
std::uint16_t intern_redop(std::uint64_t hash, const char* name) noexcept;
/// For a new file after a fork.
void reset_names() noexcept;

}  // namespace lockstep::shim
