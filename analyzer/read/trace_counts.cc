// See the header.
#include "read/trace_counts.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep {

void TraceCounts::add_shared(const CallExtensions& extensions, Operation& operation) {
  if (extensions.has_counts[1]) operation.extra = shared_extra(extensions.counts[1]);
  else if (extensions.has_counts[0]) operation.extra = shared_extra(extensions.counts[0]);
}

void TraceCounts::add_pairwise(const trace::CallRecord& call, const CallExtensions& extensions, const TraceCommView& view,
                               Operation& operation) {
  const auto& [sent, received] = extensions.counts;
  const auto& [has_sent, has_received] = extensions.has_counts;
  const bool to_all = operation.kind == OpKind::kAllToAllV;
  if (!has_sent && !has_received) {
    if (to_all) return;
    operation.count = Count::of(call.count);
    operation.datatype = names_.datatype(call.datatype);
    return;
  }
  if (to_all && has_sent && has_received && sent.datatype != received.datatype) return;
  // In place, an all_to_all sends as much as it receives.
  const trace::CountsRecord& first = has_sent ? sent : received;
  const trace::CountsRecord& second = has_received ? received : sent;
  if (first.members != view.members.size() || second.members != view.members.size()) return;
  operation.extra = pairwise_extra(first, to_all ? &second : nullptr);
  // Without its counts a type proves nothing: a member that gives and takes nothing may name any.
  if (operation.extra != 0) operation.datatype = names_.datatype(first.datatype);
}

/// Vectors are compared by what every record of them holds: the first four counts, the sum and the hash.
std::uint32_t TraceCounts::shared_extra(const trace::CountsRecord& record) {
  const auto [at, added] = shared_.try_emplace(std::tuple(record.hash, record.total, record.members), 0U);
  if (added) {
    OperationExtra extra;
    const std::uint32_t shown = std::min<std::uint32_t>(record.members, 4);
    extra.counts.assign(record.counts, record.counts + shown);
    if (record.members > shown) extra.counts.insert(extra.counts.end(), {record.total, record.hash});
    at->second = builder_.extra(std::move(extra));
  }
  return at->second;
}

/// 0 where the counts are not in the file, or too many different ones are.
std::uint32_t TraceCounts::pairwise_extra(const trace::CountsRecord& first, const trace::CountsRecord* second) {
  constexpr std::size_t kMost = 65536;
  const auto key = std::tuple(first.hash, first.total, second != nullptr ? second->hash : 0, second != nullptr ? second->total : 0);
  if (const auto known = pairwise_.find(key); known != pairwise_.end()) return known->second;
  OperationExtra extra;
  const bool whole = pairwise_.size() < kMost && read_counts(first, extra.counts) &&
                     (second == nullptr || read_counts(*second, extra.recv_counts));
  const std::uint32_t at = whole ? builder_.extra(std::move(extra)) : 0;
  if (pairwise_.size() < kMost) pairwise_.emplace(key, at);
  return at;
}

bool TraceCounts::read_counts(const trace::CountsRecord& record, std::vector<std::uint64_t>& counts) const {
  if (record.members <= std::size(record.counts)) {
    counts.assign(record.counts, record.counts + record.members);
    return true;
  }
  const TraceVector vector = record.vector < tables_.vectors.size() ? tables_.vectors[record.vector] : TraceVector{};
  if (vector.values != record.members) return false;
  for (std::uint32_t i = 0; i < vector.values; ++i) counts.push_back(bytes_.get<std::uint64_t>(vector.offset + std::uint64_t{i} * 8));
  return true;
}

}  // namespace lockstep
