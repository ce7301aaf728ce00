#include "name_registry.h"

#include <cstring>

#include "recorder.h"
#include "trace_writer.h"

namespace lockstep::shim {

constinit MeaningTable<4096> g_datatypes;
constinit MeaningTable<512> g_redops;

namespace {

constinit SpinLock g_lock;

// Hash -> id, in order of first sight; ids are positions + 1.
template <std::uint32_t kCapacity>
struct Interned {
  std::uint64_t hashes[kCapacity] = {};
  std::uint32_t used = 0;
};
constinit Interned<2048> g_datatype_ids;
constinit Interned<512> g_redop_ids;

template <std::uint32_t kCapacity>
std::uint16_t intern(Interned<kCapacity>& ids, trace::SideKind kind, std::uint64_t hash, std::uint32_t bytes,
                     const char* name) noexcept {
  const SpinGuard guard(g_lock);
  for (std::uint32_t i = 0; i < ids.used; ++i) {
    if (ids.hashes[i] == hash) return static_cast<std::uint16_t>(i + 1);
  }
  if (ids.used == kCapacity) return 0;
  const std::size_t length = std::strlen(name);
  auto* record = static_cast<trace::NamedRecord*>(
      reserve_side(kind, static_cast<std::uint32_t>(sizeof(trace::NamedRecord) + length + 1)));
  if (record == nullptr) return 0;
  ids.hashes[ids.used++] = hash;
  record->id = ids.used;
  record->bytes = bytes;
  record->hash = hash;
  std::memcpy(record + 1, name, length + 1);
  commit_side(record);
  return static_cast<std::uint16_t>(ids.used);
}

}  // namespace

std::uint16_t intern_datatype(std::uint64_t hash, std::uint32_t bytes, const char* name) noexcept {
  return intern(g_datatype_ids, trace::SideKind::kDatatype, hash, bytes, name);
}

std::uint16_t intern_redop(std::uint64_t hash, const char* name) noexcept {
  return intern(g_redop_ids, trace::SideKind::kRedop, hash, 0, name);
}

void reset_names() noexcept {
  g_lock.unlock();
  g_datatypes.clear();
  g_redops.clear();
  g_datatype_ids.used = 0;
  g_redop_ids.used = 0;
}

}  // namespace lockstep::shim
