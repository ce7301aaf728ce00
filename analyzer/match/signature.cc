// See the header. The hash reads the Operation only, so that 10^8 calls are compared at memory speed.
#include "match/signature.h"

#include <algorithm>
#include <array>
#include <utility>

#include "match/vector_counts.h"

namespace lockstep {
namespace {

struct Takes {
  bool root = false, count = false, reduction = false, extra = false;
};

constexpr Takes takes(OpKind kind) {
  return {.root = has_root(kind),
          .count = op_class(kind) == OpClass::kCollective && !has_free_count(kind),
          .reduction = has_reduction(kind),
          .extra = kind == OpKind::kNewGroup || kind == OpKind::kCreate || kind == OpKind::kCreateGroup ||
                   kind == OpKind::kShrink || kind == OpKind::kReduceScatterV || kind == OpKind::kAllGatherV};
}

constexpr std::array<Takes, 256> make_takes_table() {
  std::array<Takes, 256> table{};
  for (std::size_t kind = 0; kind < table.size(); ++kind) table[kind] = takes(static_cast<OpKind>(kind));
  return table;
}
constexpr std::array<Takes, 256> kTakes = make_takes_table();

constexpr std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93ULL;
  value ^= value >> 29;
  return value;
}

std::uint64_t hash_extra(const OperationExtra& extra) {
  std::uint64_t hash = 0;
  for (const std::uint64_t count : extra.counts) hash = mix(hash + count + 1);
  for (const std::int32_t member : extra.members) hash = mix(hash + static_cast<std::uint32_t>(member) + 2);
  return hash;
}

/// MPI asks for the same type between two members only, and a member that has nothing to give may name any.
bool has_common_type(const Job& job, const Operation& operation) {
  return !has_pairwise_counts(operation.kind) || job.library_of(operation.comm) != Library::kMpi;
}

}  // namespace

std::uint64_t signature(const Job& job, const Operation& operation) {
  const Takes& what = kTakes[static_cast<std::size_t>(operation.kind)];
  std::uint64_t small = static_cast<std::uint64_t>(operation.kind);
  if (has_common_type(job, operation)) small |= static_cast<std::uint64_t>(operation.datatype) << 8;
  if (what.reduction) small |= static_cast<std::uint64_t>(operation.redop) << 24;
  if (operation.flags != 0) {
    if (operation.nonblocking() && job.library_of(operation.comm) == Library::kMpi) small |= std::uint64_t{1} << 40;
    small |= static_cast<std::uint64_t>(operation.flags & kOpReplayed) << 35;
  }
  const std::uint64_t root = what.root ? static_cast<std::uint32_t>(operation.peer) : 0;
  const std::uint64_t count = what.count ? operation.count.bits() : 0;
  std::uint64_t hash = mix(mix(small + root * 0x9e3779b97f4a7c15ULL) + count);
  if (what.extra && operation.extra != 0) {
    // An extra that has a label or a thread alone is as none.
    if (const std::uint64_t compared = hash_extra(job.extra(operation)); compared != 0) hash = mix(hash + compared);
  }
  return hash;
}

Difference compare_collective(const Job& job, const Operation& a, const Operation& b) {
  if (a.kind != b.kind) return Difference::kKind;
  if (job.library_of(a.comm) == Library::kMpi && a.nonblocking() != b.nonblocking()) return Difference::kKind;
  const Takes& what = kTakes[static_cast<std::size_t>(a.kind)];
  if (what.root && a.peer != b.peer) return Difference::kRoot;
  if (what.extra) {
    const OperationExtra& extra_a = job.extra(a);
    const OperationExtra& extra_b = job.extra(b);
    if (extra_a.members != extra_b.members) return Difference::kCreation;
    if (extra_a.counts != extra_b.counts) return Difference::kCount;
  }
  if (what.count && a.count != b.count && a.datatype != b.datatype && job.library_of(a.comm) == Library::kNccl && !what.reduction) {
    // NCCL moves bytes: calls of as many bytes end, whatever they count in.
    const std::optional<std::uint64_t> bytes = operation_bytes(job, a);
    if (bytes && bytes == operation_bytes(job, b)) return Difference::kDatatype;
  }
  if (what.count && a.count != b.count) return Difference::kCount;
  if (a.datatype != b.datatype && has_common_type(job, a)) return Difference::kDatatype;
  if (what.reduction && a.redop != b.redop) return Difference::kReduction;
  if (((a.flags ^ b.flags) & kOpReplayed) != 0) return Difference::kCapture;
  return Difference::kNone;
}

Difference compare_message(const Job& job, const Operation& send, const Operation& receive) {
  // "act:0.2" is kind and identity; a side that gives the kind alone agrees with every identity of it.
  const auto split = [](std::string_view payload) {
    const std::size_t colon = payload.find(':');
    return colon == std::string_view::npos ? std::pair(payload, std::string_view{})
                                           : std::pair(payload.substr(0, colon), payload.substr(colon + 1));
  };
  const auto [sent_kind, sent_id] = split(job.text(send.payload));
  const auto [wanted_kind, wanted_id] = split(job.text(receive.payload));
  if (!sent_kind.empty() && !wanted_kind.empty()) {
    if (sent_kind != wanted_kind) return Difference::kPayload;
    if (!sent_id.empty() && !wanted_id.empty() && sent_id != wanted_id) return Difference::kPayload;
  }
  const bool both_typed = send.datatype != DatatypeIndex{} && receive.datatype != DatatypeIndex{};
  if (both_typed && send.datatype != receive.datatype) return Difference::kDatatype;
  if (send.count.is_none() || receive.count.is_none() || send.count == receive.count) return Difference::kNone;
  const bool shorter_is_legal = job.library_of(send.comm) == Library::kMpi && send.count.is_number() &&
                                receive.count.is_number() && send.count.number() <= receive.count.number();
  return shorter_is_legal ? Difference::kNone : Difference::kCount;
}

std::optional<std::uint64_t> operation_bytes(const Job& job, const Operation& operation) {
  const std::size_t size = datatype_bytes(job.datatype(operation.datatype));
  if (size == 0 || !operation.count.is_number() || operation.count.number() > Count::kMaxNumber / size) return std::nullopt;
  return operation.count.number() * size;
}

std::size_t datatype_bytes(std::string_view datatype) {
  constexpr std::pair<std::string_view, std::size_t> kBytes[] = {
      {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"i8", 1},  {"u8", 1},     {"i16", 2},
      {"u16", 2}, {"i32", 4},  {"u32", 4}, {"i64", 8}, {"u64", 8}, {"f8e4m3", 1}, {"f8e5m2", 1},
      {"bool", 1}};
  const auto* const known = std::ranges::find(kBytes, datatype, &std::pair<std::string_view, std::size_t>::first);
  return known == std::end(kBytes) ? 0 : known->second;
}

}  // namespace lockstep
