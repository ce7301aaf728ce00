// See the header.
#include "diagnose/nccl_deviations.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "match/signature.h"

namespace lockstep {
namespace {

/// Every call of the edit is a collective of no elements.
bool is_about_nothing(const Describer& describe, const CommunicatorDifference& difference, const Deviation& deviation, const Edit& edit) {
  const auto is_empty = [&](std::size_t variant, std::uint32_t at) {
    const std::size_t member = difference.variants[variant].longest;
    return is_empty_collective(
        describe.operation(difference.sequences.members[member], difference.sequences.operations[member][at]));
  };
  if (edit.kind != EditKind::kExtra && !is_empty(0, edit.reference)) return false;
  return edit.kind == EditKind::kMissing || is_empty(deviation.variant, edit.other);
}

bool is_nccl(const Describer& describe, CommIndex comm) { return describe.job().library_of(comm) == Library::kNccl; }

bool someone_stands_on(const Describer& describe, const ReplayResult& standstill, CommIndex comm) {
  return std::ranges::any_of(standstill.blocked, [&](const BlockedOperation& blocked) {
    return describe.operation(blocked.program, blocked.operation).comm == comm;
  });
}

}  // namespace

std::vector<Deviation> told_apart(const Describer& describe, const CommunicatorDifference& difference, const Deviation& deviation) {
  if (!is_nccl(describe, difference.comm)) return {deviation};
  const auto empty = [&](const Edit& edit) { return is_about_nothing(describe, difference, deviation, edit); };
  const auto empties = std::ranges::count_if(deviation.alignment.edits, empty);
  if (empties == 0 || std::cmp_equal(empties, deviation.alignment.edits.size())) return {deviation};
  Deviation others = deviation;
  Deviation nothing = deviation;
  std::erase_if(others.alignment.edits, empty);
  std::erase_if(nothing.alignment.edits, std::not_fn(empty));
  return {std::move(others), std::move(nothing)};
}

bool apply_nccl_leniency(const Describer& describe, const CommunicatorDifference& difference, const Deviation& deviation,
                         const ReplayResult& standstill, Finding& finding) {
  if (finding.severity != Severity::kCertain || !is_nccl(describe, difference.comm)) return false;
  const bool about_nothing = std::ranges::all_of(deviation.alignment.edits, [&](const Edit& edit) {
    return is_about_nothing(describe, difference, deviation, edit);
  });
  if (about_nothing) {
    finding.severity = Severity::kContractViolation;
    finding.explanation += "; NCCL returns from a collective of no elements without enqueuing it, so nobody waits";
    return true;
  }
  if (!describe.match().communicators[to_size(difference.comm)].apart || someone_stands_on(describe, standstill, difference.comm)) return false;
  finding.severity = Severity::kContractViolation;
  finding.explanation += "; hosts meet to make or end a communicator apart from what the device runs, and calls of no elements are "
                         "not enqueued, so this run can end; NCCL's contract asks for one order of all calls";
  return false;
}

}  // namespace lockstep
