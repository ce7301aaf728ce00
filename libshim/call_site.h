// Return address of a call -> small id. Names and lines are found offline; the trace keeps the map of
// executable files.
#pragma once

#include <atomic>
#include <cstdint>

#include "spin_lock.h"

namespace lockstep::shim {

struct Site {
  std::atomic<std::uint64_t> address{0};
  std::uint32_t id = 0;
};
inline constexpr std::uint32_t kSiteSlots = 16384;
extern constinit Site g_sites[kSiteSlots];

/// Id for an address seen for the first time: writes its side records, reads /proc/self/maps for a new file.
/// Cold.
std::uint32_t add_site(std::uint64_t address) noexcept;

/// 0 = the table is full. A few ns for a known address.
inline std::uint32_t site_id(const void* address) noexcept {
  const auto value = reinterpret_cast<std::uint64_t>(address);
  std::uint64_t at = spread(value);
  for (std::uint32_t tries = 0; tries < 32; ++tries, ++at) {
    const Site& site = g_sites[at % kSiteSlots];
    const std::uint64_t found = site.address.load(std::memory_order_acquire);
    if (found == value) return site.id;
    if (found == 0) return add_site(value);
  }
  return 0;
}

/// An id for a site that is described in another way. Cold.
std::uint32_t next_site_id() noexcept;

/// For a new file after a fork.
void reset_sites() noexcept;

}  // namespace lockstep::shim
