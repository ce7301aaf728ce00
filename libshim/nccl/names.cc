// See the header.
#include "nccl/names.h"

#include <cstdlib>
#include <cstring>

#include "nccl/dispatch.h"
#include "recorder.h"
#include "spin_lock.h"
#include "text.h"
#include "trace_writer.h"

namespace lockstep::shim::nccl {

constinit Meaning g_types[kDatatypes] = {};
constinit Meaning g_operators[kRedops] = {};
constinit std::uint32_t g_named_epoch = 0;

namespace {

constinit SpinLock g_lock;

struct TypeRow {
  const char* name;
  std::uint32_t bytes;
  const char* short_name;
};
constexpr TypeRow kTypeRows[kDatatypes] = {
#define X(name, value, bytes, short_name) {#name, bytes, short_name},
    LOCKSTEP_NCCL_DATATYPES(X)
#undef X
};
const char* const kRedopNames[kRedops] = {
#define X(name, value, short_name) #name,
    LOCKSTEP_NCCL_REDOPS(X)
#undef X
};

std::uint64_t hash_of(const char* text) noexcept { return trace::text_hash(text, std::strlen(text)); }

// 2.8.x was 28xx, from 2.9 on 2.9.6 is 20906.
void write_version() noexcept {
  int code = 0;
  const auto version = original<ncclResult_t (*)(int*)>(Function::kGetVersion);
  if (version == nullptr || version(&code) != ncclSuccess || code <= 0) return;
  const int major = code < 10000 ? code / 1000 : code / 10000;
  const int minor = code < 10000 ? code / 100 % 10 : code / 100 % 100;
  char text[64];
  Text(text).add("NCCL ").add_number(major).add(".").add_number(minor).add(".").add_number(code % 100);
  write_text(trace::SideKind::kLibrary, static_cast<std::uint32_t>(trace::Library::kNccl), text);
}

}  // namespace

void begin_file() noexcept {
  const SpinGuard guard(g_lock);
  if (g_named_epoch == g_recorder.epoch) return;
  const ErrnoKeeper keep;
  for (std::uint32_t i = 0; i < kDatatypes; ++i) {
    const TypeRow& row = kTypeRows[i];
    Meaning meaning{.hash = hash_of(row.name), .units = 1, .unit_bytes = row.bytes, .id = 0};
    meaning.id = intern_datatype(meaning.hash, row.bytes, row.name);
    g_types[i] = meaning;
  }
  for (std::uint32_t i = 0; i < kRedops; ++i) {
    Meaning meaning{.hash = hash_of(kRedopNames[i]), .units = 1, .unit_bytes = 0, .id = 0};
    meaning.id = intern_redop(meaning.hash, kRedopNames[i]);
    g_operators[i] = meaning;
  }
  write_version();
  // The one value of the environment that is recorded: it decides how collectives of several communicators are ordered.
  if (const char* order = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT")) {
    const bool is_number = parse_number(order, -9) != -9;
    write_text(trace::SideKind::kNote, trace::kNoteImplicitLaunchOrder, is_number ? order : "");
  }
  std::atomic_ref(g_named_epoch).store(g_recorder.epoch, std::memory_order_release);
}

std::uint32_t bytes_of(ncclDataType_t type) noexcept {
  const auto index = static_cast<std::uint32_t>(type);
  return index < kDatatypes ? kTypeRows[index].bytes : 0;
}

void learn_premul_sum(ncclRedOp_t op, std::uint64_t comm, ncclDataType_t type,
                      ncclScalarResidence_t residence) noexcept {
  const auto index = static_cast<std::uint32_t>(type);
  char name[64];
  Text(name)
      .add("premul_sum(")
      .add(index < kDatatypes ? kTypeRows[index].short_name : "?")
      .add(residence == ncclScalarDevice ? ",device)" : residence == ncclScalarHostImmediate ? ",host)" : ",?)");
  Meaning meaning{.hash = hash_of(name), .units = 1, .unit_bytes = 0, .id = 0};
  meaning.id = intern_redop(meaning.hash, name);
  g_redops.put(redop_key(op, comm), meaning);
}

}  // namespace lockstep::shim::nccl
