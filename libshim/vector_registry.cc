#include "vector_registry.h"

#include <atomic>

#include "recorder.h"
#include "trace_writer.h"

namespace lockstep::shim {
namespace {

constexpr std::uint32_t kSlots = 1024;
constexpr std::uint64_t kTaken = ~std::uint64_t{0};  ///< a thread writes here: id and hash must be of one vector
struct Slot {
  std::atomic<std::uint64_t> hash{0};
  std::atomic<std::uint32_t> id{0};
};
constinit Slot g_slots[kSlots] = {};
constinit std::atomic<std::uint32_t> g_next{1};

}  // namespace

std::uint32_t find_vector(std::uint64_t hash) noexcept {
  const Slot& slot = g_slots[hash % kSlots];
  return hash != kTaken && slot.hash.load(std::memory_order_acquire) == hash ? slot.id.load(std::memory_order_relaxed) : 0;
}

std::uint64_t* begin_vector(std::uint64_t hash, std::uint32_t values, std::uint32_t& id) noexcept {
  Slot& slot = g_slots[hash % kSlots];
  if (hash == 0 || hash == kTaken || slot.hash.load(std::memory_order_relaxed) != 0)
    return nullptr;  // the place is another one's
  // Vectors must not push out what every call needs: half of the area at most, and no giants.
  const std::uint64_t bytes = sizeof(trace::VectorRecord) + std::uint64_t{values} * 8;
  const std::uint64_t used =
      std::atomic_ref(g_recorder.map.header->side_used).load(std::memory_order_relaxed);
  if (bytes > g_recorder.map.side_bytes / 8 || used + bytes > g_recorder.map.side_bytes / 2) return nullptr;
  std::uint64_t free = 0;
  if (!slot.hash.compare_exchange_strong(free, kTaken, std::memory_order_acquire)) return nullptr;
  auto* record = static_cast<trace::VectorRecord*>(
      reserve_side(trace::SideKind::kVector, static_cast<std::uint32_t>(bytes)));
  if (record == nullptr) {
    slot.hash.store(0, std::memory_order_relaxed);
    return nullptr;
  }
  id = g_next.fetch_add(1, std::memory_order_relaxed);
  record->vector = id;
  record->values = values;
  record->hash = hash;
  slot.id.store(id, std::memory_order_relaxed);
  slot.hash.store(hash, std::memory_order_release);
  return reinterpret_cast<std::uint64_t*>(record + 1);
}

void end_vector(std::uint64_t* values) noexcept {
  commit_side(reinterpret_cast<trace::VectorRecord*>(values) - 1);
}

void reset_vectors() noexcept {
  for (Slot& slot : g_slots) slot.hash.store(0, std::memory_order_relaxed);
  g_next.store(1, std::memory_order_relaxed);
}

}  // namespace lockstep::shim
