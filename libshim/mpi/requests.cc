#include "mpi/requests.h"

namespace lockstep::shim::mpi {

constinit RequestSlot g_requests[kRequestSlots] = {};
constinit std::atomic<std::uint32_t> g_next_request{1};
constinit PairSlot g_pairs[kPairSlots] = {};
constinit FoundMessage g_found[kFoundSlots] = {};

void reset_requests() noexcept {
  for (RequestSlot& slot : g_requests) slot.handle.store(0, std::memory_order_relaxed);
  for (FoundMessage& message : g_found) message.handle.store(0, std::memory_order_relaxed);
  for (PairSlot& slot : g_pairs) {
    slot.key.store(0, std::memory_order_relaxed);
    slot.messages.store(0, std::memory_order_relaxed);
  }
  g_next_request.store(1, std::memory_order_relaxed);
}

}  // namespace lockstep::shim::mpi
