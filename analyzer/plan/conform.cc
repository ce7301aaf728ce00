// Lays the iterations of a plan over the recorded program of each rank.
#include "plan/conform.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace lockstep::plan {
namespace {

/// A call as both sides can tell it. Whether the host waits is no business of the plan.
struct Signature {
  OpKind kind = OpKind::kUnknown;
  std::vector<std::int32_t>
      members{};  ///< in ascending order; of messages empty: the group is the library's choice
  std::int32_t peer = kNoPeer;
  std::optional<std::uint64_t> count{};  ///< nothing: not a number
  std::string datatype{};
  std::string redop{};
};

OpKind without_wait(OpKind kind) {
  if (kind == OpKind::kIsend) return OpKind::kSend;
  if (kind == OpKind::kIrecv) return OpKind::kRecv;
  return kind;
}

/// What a plan calls a datatype: a record of MPI has the names of its types.
std::string_view planned_name(std::string_view datatype) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"MPI_UINT8_T", "u8"},     {"MPI_BYTE", "u8"},        {"MPI_UNSIGNED_CHAR", "u8"},
      {"MPI_INT8_T", "i8"},      {"MPI_SIGNED_CHAR", "i8"}, {"MPI_UINT16_T", "u16"},
      {"MPI_INT16_T", "i16"},    {"MPI_SHORT", "i16"},      {"MPI_UNSIGNED_SHORT", "u16"},
      {"MPI_INT32_T", "i32"},    {"MPI_INT", "i32"},        {"MPI_UINT32_T", "u32"},
      {"MPI_UNSIGNED", "u32"},   {"MPI_INT64_T", "i64"},    {"MPI_LONG", "i64"},
      {"MPI_LONG_LONG", "i64"},  {"MPI_UINT64_T", "u64"},   {"MPI_UNSIGNED_LONG", "u64"},
      {"MPI_FLOAT", "f32"},      {"MPI_DOUBLE", "f64"}};
  const auto* const found = std::ranges::find(kNames, datatype, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kNames) ? datatype : found->second;
}

/// A library without half precision moves such numbers as integers of their size; it cannot add them up so.
bool same_bits(std::string_view a, std::string_view b) {
  const auto is_half = [](std::string_view type) { return type == "f16" || type == "bf16"; };
  const auto is_integer = [](std::string_view type) { return type == "u16" || type == "i16"; };
  return (is_half(a) && is_integer(b)) || (is_integer(a) && is_half(b));
}

bool is_message(OpKind kind) { return op_class(kind) == OpClass::kPointToPoint; }

Signature signature_of(const Job& job, const Operation& operation) {
  Signature signature;
  signature.kind = without_wait(operation.kind);
  if (!is_message(operation.kind)) {
    signature.members = job.communicator(operation.comm).members;
    std::ranges::sort(signature.members);
  }
  signature.peer = operation.peer;
  if (!operation.count.is_none() && operation.count.is_number()) signature.count = operation.count.number();
  signature.datatype = planned_name(job.datatype(operation.datatype));
  signature.redop = job.redop(operation.redop);
  return signature;
}

/// Unknown parts agree with everything.
bool agree(const Signature& a, const Signature& b) {
  const auto same_text = [](const std::string& x, const std::string& y) {
    return x.empty() || y.empty() || x == y;
  };
  return a.kind == b.kind && a.members == b.members && a.peer == b.peer &&
         (!a.count || !b.count || a.count == b.count) &&
         (same_text(a.datatype, b.datatype) || (a.redop.empty() && b.redop.empty() && same_bits(a.datatype, b.datatype))) &&
         same_text(a.redop, b.redop);
}

struct Sequence {
  std::vector<Signature> signatures{};
  std::vector<const Operation*> operations{};
  std::size_t size() const { return signatures.size(); }
};

Sequence sequence_of(const Job& job, std::int32_t rank, const std::set<std::vector<std::int32_t>>* groups) {
  Sequence sequence;
  const ProgramIndex index = job.program_of_rank(rank);
  if (index == kNoProgram) return sequence;
  for (const Operation& operation : job.program(index).placed_operations()) {
    const OpClass kind = op_class(operation.kind);
    if (kind != OpClass::kCollective && kind != OpClass::kPointToPoint) continue;
    Signature signature = signature_of(job, operation);
    // Groups that the plan does not use are none of its business.
    if (groups != nullptr && kind == OpClass::kCollective && !groups->contains(signature.members)) continue;
    sequence.signatures.push_back(std::move(signature));
    sequence.operations.push_back(&operation);
  }
  return sequence;
}

std::size_t agreeing(const Sequence& recorded, std::size_t from, const Sequence& planned) {
  std::size_t length = 0;
  while (length < planned.size() && from + length < recorded.size() &&
         agree(recorded.signatures[from + length], planned.signatures[length]))
    ++length;
  return length;
}

/// One way to lay iterations over a record from an offset on.
struct Cover {
  RankConformance counts{};
  std::optional<std::size_t> failing{};  ///< index of the expansion that fits best where none fits
  std::optional<std::size_t> ending{};   ///< index of the expansion that the record ends in
  std::size_t failing_at = 0;            ///< recorded position of the first call that does not agree
};

Cover cover_from(const Sequence& recorded, std::size_t offset, const std::vector<Sequence>& plans) {
  Cover cover;
  cover.counts.unclaimed_before = offset;
  std::size_t at = offset;
  while (at < recorded.size()) {
    std::size_t best = 0;
    std::size_t best_plan = 0;
    bool whole = false;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const std::size_t length = agreeing(recorded, at, plans[i]);
      const bool is_whole = length == plans[i].size() && length > 0;
      // The longest whole iteration; a skipped step is the beginning of one that is made.
      if (std::tuple(is_whole, length) <= std::tuple(whole, best)) continue;
      best = length;
      best_plan = i;
      whole = is_whole;
    }
    // A step that is cut short by the end of the record fits better than the whole of a shorter one.
    for (std::size_t i = 0; i < plans.size(); ++i)
      if (const std::size_t length = agreeing(recorded, at, plans[i]);
          at + length == recorded.size() && length > best) {
        best = length;
        best_plan = i;
        whole = length == plans[i].size();
      }
    cover.counts.calls += best;
    at += best;
    if (whole) {
      ++cover.counts.iterations;
      continue;
    }
    cover.counts.partial = best;
    if (at == recorded.size()) {
      cover.ending = best_plan;
      return cover;
    }
    if (best == 0) {
      cover.counts.unclaimed_after = recorded.size() - at;
      return cover;
    }
    cover.failing = best_plan;
    cover.failing_at = at;
    return cover;
  }
  return cover;
}

Cover best_cover(const Sequence& recorded, const std::vector<Sequence>& plans) {
  constexpr std::size_t kMostOffsets = 20'000;  // calls before training; each is tried as its beginning
  Cover best;
  for (std::size_t offset = 0; offset < std::min(recorded.size(), kMostOffsets); ++offset) {
    Cover cover = cover_from(recorded, offset, plans);
    if (cover.counts.calls > best.counts.calls) best = std::move(cover);
    if (best.counts.calls >= recorded.size() - offset) break;  // nothing later can cover more
  }
  return best;
}

std::set<std::vector<std::int32_t>> planned_groups(const std::vector<Expansion>& iterations) {
  std::set<std::vector<std::int32_t>> groups;
  for (const Expansion& expansion : iterations)
    for (const Communicator& communicator : expansion.job.communicators()) {
      std::vector<std::int32_t> members = communicator.members;
      std::ranges::sort(members);
      groups.insert(std::move(members));
    }
  return groups;
}

}  // namespace

std::string_view conformance_name(Conformance conformance) {
  switch (conformance) {
    case Conformance::kConforms:
      return "conforms";
    case Conformance::kDiffers:
      return "differs";
    case Conformance::kInsufficient:
      return "insufficient";
  }
  return "insufficient";
}

ConformResult conform(const Job& recorded, const std::vector<Expansion>& iterations) {
  ConformResult result;
  if (iterations.empty()) return result;
  const auto groups = planned_groups(iterations);
  bool every_rank_claims = true;
  for (const Program& planned : iterations[0].job.programs()) {
    const Sequence record = sequence_of(recorded, planned.rank, &groups);
    std::vector<Sequence> plans;
    for (const Expansion& expansion : iterations)
      plans.push_back(sequence_of(expansion.job, planned.rank, nullptr));
    Cover cover = best_cover(record, plans);
    cover.counts.rank = planned.rank;
    every_rank_claims = every_rank_claims && cover.counts.calls > 0;
    if (cover.ending) {
      const auto& operations = plans[*cover.ending].operations;
      cover.counts.expansion = &iterations[*cover.ending];
      cover.counts.last = operations[cover.counts.partial - 1];
      cover.counts.next = cover.counts.partial < operations.size() ? operations[cover.counts.partial] : nullptr;
    }
    result.ranks.push_back(cover.counts);
    if (!cover.failing) continue;
    const Sequence& plan = plans[*cover.failing];
    result.differences.push_back(
        {planned.rank, cover.counts.iterations, cover.counts.partial, record.operations[cover.failing_at],
         cover.counts.partial < plan.size() ? plan.operations[cover.counts.partial] : nullptr,
         &iterations[*cover.failing]});
  }
  std::ranges::stable_sort(result.differences, {},
                           [](const Difference& d) { return std::pair(d.iteration, d.position); });
  if (!result.differences.empty())
    result.conformance = Conformance::kDiffers;
  else if (every_rank_claims)
    result.conformance = Conformance::kConforms;
  return result;
}

}  // namespace lockstep::plan
