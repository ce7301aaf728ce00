// See the header. Classes follow the taxonomy of public reports; each is decided by what the calls show, never by names.
#include "diagnose/collective_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/rank_ranges.h"
#include "diagnose/call_counts.h"
#include "diagnose/departure.h"

namespace lockstep {
namespace {

/// Both sides' calls at an edit; the member index of each side's representative.
struct Sides {
  ProgramIndex reference = kNoProgram;
  ProgramIndex other = kNoProgram;
  const std::vector<std::uint32_t>* reference_calls = nullptr;  // operation index by seq
  const std::vector<std::uint32_t>* other_calls = nullptr;
};

Sides sides_of(const CommunicatorDifference& difference, const Deviation& deviation) {
  const std::size_t reference = difference.variants[0].longest;
  const std::size_t other = difference.variants[deviation.variant].longest;
  return {difference.sequences.members[reference], difference.sequences.members[other],
          &difference.sequences.operations[reference], &difference.sequences.operations[other]};
}

std::vector<std::int32_t> ranks_of(const Job& job, const std::vector<ProgramIndex>& programs) {
  std::vector<std::int32_t> ranks;
  for (const ProgramIndex program : programs) ranks.push_back(job.program(program).rank);
  return ranks;
}

/// All members make the same calls, in another order.
bool is_permutation(const Describer& describe, const Sides& sides, const Alignment& alignment) {
  if (!alignment.complete) return false;
  std::map<std::uint64_t, int> balance;
  bool paired = false;
  for (const Edit& edit : alignment.edits) {
    if (edit.kind != EditKind::kExtra) {
      ++balance[signature(describe.job(), describe.operation(sides.reference, (*sides.reference_calls)[edit.reference]))];
    }
    if (edit.kind != EditKind::kMissing) {
      --balance[signature(describe.job(), describe.operation(sides.other, (*sides.other_calls)[edit.other]))];
      paired = true;
    }
  }
  return paired && alignment.edits.size() > 1 && std::ranges::all_of(balance, [](const auto& entry) { return entry.second == 0; });
}

/// What both still call from the first difference on are the same calls, none of which occurs twice: another order, although the
/// records may go on. (Where a call comes again, it may as well have been left out the first time.)
bool is_reordered_tail(const Describer& describe, const Sides& sides, const Alignment& alignment) {
  const Edit& first = alignment.edits.front();
  const std::size_t calls = sides.reference_calls->size() - std::min<std::size_t>(first.reference, sides.reference_calls->size());
  if (first.reference != first.other || calls < 2 || calls > Alignment::kWindow ||
      sides.other_calls->size() != sides.reference_calls->size()) {
    return false;
  }
  std::map<std::uint64_t, int> seen;
  for (const std::uint32_t call : *sides.reference_calls) ++seen[signature(describe.job(), describe.operation(sides.reference, call))];
  for (std::size_t i = first.other; i < sides.other_calls->size(); ++i) {
    const auto at = seen.find(signature(describe.job(), describe.operation(sides.other, (*sides.other_calls)[i])));
    if (at == seen.end() || at->second != 1) return false;
    at->second = 0;
  }
  return true;
}

std::string_view class_of(Difference difference) {
  switch (difference) {
    case Difference::kNone:
    case Difference::kKind:
      return "kind_differs";
    case Difference::kRoot:
      return "root_differs";
    case Difference::kCreation:
      return "creation_differs";
    case Difference::kCount:
      return "size_differs";
    case Difference::kDatatype:
      return "datatype_differs";
    case Difference::kReduction:
      return "reduction_differs";
    case Difference::kPayload:
      return "payload_differs";
    case Difference::kCapture:
      return "capture_differs";
  }
  return "kind_differs";
}

std::string_view fix_of(Difference difference) {
  switch (difference) {
    case Difference::kNone:
    case Difference::kKind:
      return "let every member of the group take the same branch before this call: decide on a value that all of them share";
    case Difference::kRoot:
      return "compute the root from something that all members share, and give it as the same rank everywhere";
    case Difference::kCreation:
      return "let all ranks create the same groups with the same member lists, in the same order";
    case Difference::kCount:
      return "agree on the size first (gather the sizes, or pad to the largest), or use the variant with per-rank sizes";
    case Difference::kDatatype:
      return "convert to one datatype before the call on every member";
    case Difference::kReduction:
      return "use the same reduction on every member";
    case Difference::kPayload:
      return "receive in the order in which the peer sends";
    case Difference::kCapture:
      return "capture the call on every member, or on none, and launch the graph equally often everywhere";
  }
  return "";
}

/// Length of the shortest repetition that the last calls of the reference are made of; 0 = none seen twice.
std::size_t period_before(const Describer& describe, const Sides& sides, std::size_t end, std::size_t longest) {
  const auto key = [&](std::size_t seq) {
    return signature(describe.job(), describe.operation(sides.reference, (*sides.reference_calls)[seq]));
  };
  for (std::size_t period = 1; period <= longest && 2 * period <= end; ++period) {
    bool repeats = true;
    for (std::size_t i = 0; i < period && repeats; ++i) repeats = key(end - 1 - i) == key(end - 1 - i - period);
    if (repeats) return period;
  }
  return 0;
}

struct Imbalance {
  std::string_view finding_class;
  std::string reason;
};

/// The process ended with an error, and no call of it is open: it would have come to none of those that the others wait in.
bool ends_with_an_error(const Program& program) {
  if (program.end.kind != EndKind::kExited || program.end.status <= 0 || program.operations.empty()) return false;
  const Operation& last = program.operations[program.operations.size() - 1];
  return (last.state == OpState::kCompleted || last.state == OpState::kUnknown) && (last.flags & kOpFailed) == 0;
}

Imbalance classify_missing(const Describer& describe, const Sides& sides, const Deviation& deviation) {
  const Edit& first = deviation.alignment.edits.front();
  const std::uint32_t call = (*sides.reference_calls)[first.reference];
  const CommIndex comm = describe.operation(sides.reference, call).comm;
  const bool at_end = first.other == sides.other_calls->size();
  const std::size_t lacking = sides.reference_calls->size() - std::min(sides.reference_calls->size(), sides.other_calls->size());
  const std::int32_t rank = describe.job().program(sides.other).rank;
  if (op_class(describe.operation(sides.reference, call).kind) == OpClass::kCreation) {
    return {"creation_not_joined", fmt::format("rank {} does not take part in making the communicator", rank)};
  }
  if (sides.other_calls->empty() && std::ranges::find(describe.job().program(sides.other).earlier, comm, &EarlierCalls::comm) !=
                                       describe.job().program(sides.other).earlier.end()) {
    return {"never_arrived", fmt::format("rank {} comes to none of the calls that the others are in", rank)};
  }
  if (sides.other_calls->empty()) {
    return {"never_arrived", fmt::format("rank {} makes no call on this group at all", rank)};
  }
  const bool is_last = at_end && sides.other_calls->back() + 1 == describe.job().program(sides.other).operations.size();
  if (is_last && ends_with_an_error(describe.job().program(sides.other))) {
    return {"early_exit", fmt::format("rank {} ends with an error after its call before this one", rank)};
  }
  if (at_end) {
    const std::size_t period = period_before(describe, sides, first.reference, lacking);
    // One call that repeats may be anything; seen three times, or as a longer round twice, it is an iteration.
    const bool iterates = period > 1 || (period == 1 && first.reference >= 3);
    if (iterates && lacking % period == 0) {
      return {"uneven_iterations",
              fmt::format("{}, and rank {} runs {} fewer: the ranks have different numbers of iterations (batches, "
                          "micro-batches)",
                          period == 1 ? "the call repeats" : fmt::format("the calls repeat in rounds of {}", period), rank,
                          lacking / period)};
    }
  }
  const std::uint32_t made = count_like(describe, sides.other, comm, sides.reference, call);
  if (made > 0 && describe.operation(sides.reference, call).site != SiteIndex{}) {
    return {"count_differs_by_local_state",
            fmt::format("the same line runs {} on rank {} and {} on rank {}", 
                        times_text(count_like(describe, sides.reference, comm, sides.reference, call)),
                        describe.job().program(sides.reference).rank, times_text(made), rank)};
  }
  if (is_last) return {"early_exit", fmt::format("rank {} ends after its call before this one", rank)};
  return {"call_skipped", fmt::format("rank {} goes on without it", rank)};
}

Imbalance classify_extra(const Describer& describe, const Sides& sides, const Deviation& deviation) {
  const Edit& first = deviation.alignment.edits.front();
  const std::uint32_t call = (*sides.other_calls)[first.other];
  const Operation& operation = describe.operation(sides.other, call);
  const std::uint32_t made = count_like(describe, sides.reference, operation.comm, sides.other, call);
  const std::int32_t rank = describe.job().program(sides.other).rank;
  if (made == 0) {
    return {"rank_gated_call", fmt::format("no other rank makes such a call{}: it stands behind a condition that is true on rank {} only",
                                           describe.from_site(operation), rank)};
  }
  if (operation.site != SiteIndex{}) {
    return {"count_differs_by_local_state",
            fmt::format("the same line runs {} on rank {} and {} on rank {}",
                        times_text(count_like(describe, sides.other, operation.comm, sides.other, call)), rank,
                        times_text(made), describe.job().program(sides.reference).rank)};
  }
  const std::uint32_t more = count_like(describe, sides.other, operation.comm, sides.other, call);
  if (more <= made + 1) return {"extra_call", fmt::format("rank {} makes one such call more", rank)};
  return {"extra_call", fmt::format("rank {} makes {} such calls more", rank, more - made)};
}

void describe_mismatch(const Describer& describe, const CommunicatorDifference& difference, const Deviation& deviation,
                       const Sides& sides, Finding& finding) {
  const Edit& edit = deviation.alignment.edits.front();
  const std::uint32_t ours = (*sides.other_calls)[edit.other];
  const std::uint32_t theirs = (*sides.reference_calls)[edit.reference];
  const Operation& a = describe.operation(sides.other, ours);
  const Operation& b = describe.operation(sides.reference, theirs);
  const Difference what = compare_collective(describe.job(), b, a);
  finding.verdict = Verdict::kMismatch;
  finding.finding_class = class_of(what);
  finding.severity = Severity::kCertain;
  // Equal bytes arrive whole today, since they are moved as bytes; NCCL's contract still asks for one type.
  if (what == Difference::kDatatype && !has_reduction(a.kind)) {
    const auto bytes = operation_bytes(describe.job(), a);
    const std::size_t size = datatype_bytes(describe.job().datatype(a.datatype));
    if ((bytes && bytes == operation_bytes(describe.job(), b)) ||
        (size != 0 && size == datatype_bytes(describe.job().datatype(b.datatype)))) {
      finding.severity = Severity::kContractViolation;
    }
  }
  if (what == Difference::kCapture) finding.severity = Severity::kContractViolation;
  const std::vector<std::int32_t> deviating = ranks_of(describe.job(), deviation.deviating);
  const std::vector<std::int32_t> others = ranks_of(describe.job(), deviation.conforming);
  finding.title = fmt::format("{} and {} make different calls at #{} on {}", ranks_text(deviating), ranks_text(others),
                              difference.sequences.first + edit.reference, describe.communicator(difference.comm));
  finding.explanation = fmt::format("at #{} on {}, {} call{} {}{}; {} call{} {}{}", difference.sequences.first + edit.reference,
                                    describe.communicator(difference.comm), ranks_text(deviating),
                                    deviating.size() == 1 ? "s" : "", describe.arguments(a), describe.from_site(a),
                                    ranks_text(others), others.size() == 1 ? "s" : "", describe.arguments(b),
                                    describe.from_site(b));
  finding.fix = fix_of(what);
  finding.operations = {describe.view(sides.other, ours), describe.view(sides.reference, theirs)};
  const bool other_place = a.site != b.site && a.site != SiteIndex{} && b.site != SiteIndex{};
  if (!other_place) return;
  // Two places of the program meet in one call: that their arguments differ follows from it. But a call with a root often stands
  // in two branches, one for the root.
  if (!has_root(a.kind)) finding.fix = fix_of(Difference::kKind);
  const bool stand_in_them = edit.other + 1 == sides.other_calls->size() && edit.reference + 1 == sides.reference_calls->size();
  const auto departure = stand_in_them ? find_departure(describe, {sides.other, ours}, {sides.reference, theirs}) : std::nullopt;
  if (!departure) return;
  const bool deviating_call = departure->call.program == sides.other;
  const DepartureWords words =
      departure_words(describe, *departure, deviating_call ? deviating : others, deviating_call ? others : deviating);
  finding.explanation += "; " + words.text;
  finding.fix = fix_of_imbalance(words.finding_class);
}

void describe_order(const Describer& describe, const CommunicatorDifference& difference, const Deviation& deviation,
                    const Sides& sides, Finding& finding) {
  const Edit& first = deviation.alignment.edits.front();
  // Both sides at the first position that differs: what one calls now, the other calls later.
  const std::uint32_t at = std::min(first.reference, first.other);
  const std::uint32_t ours = (*sides.other_calls)[std::min<std::size_t>(at, sides.other_calls->size() - 1)];
  const std::uint32_t theirs = (*sides.reference_calls)[std::min<std::size_t>(at, sides.reference_calls->size() - 1)];
  finding.verdict = Verdict::kOrder;
  finding.finding_class = "order_differs";
  finding.severity = Severity::kCertain;
  const std::vector<std::int32_t> deviating = ranks_of(describe.job(), deviation.deviating);
  const std::vector<std::int32_t> others = ranks_of(describe.job(), deviation.conforming);
  finding.title = fmt::format("{} make{} the same calls on {} as {}, in another order, from #{} on", ranks_text(deviating),
                              deviating.size() == 1 ? "s" : "", describe.communicator(difference.comm),
                              ranks_text(others), difference.sequences.first + at);
  finding.explanation = fmt::format(
      "at #{} on {}, {} call{} {}{}, where {} call{} {}{}; each makes the other's call later", difference.sequences.first + at,
      describe.communicator(difference.comm), ranks_text(deviating), deviating.size() == 1 ? "s" : "",
      describe.arguments(describe.operation(sides.other, ours)), describe.from_site(describe.operation(sides.other, ours)),
      ranks_text(others), others.size() == 1 ? "s" : "", describe.arguments(describe.operation(sides.reference, theirs)),
      describe.from_site(describe.operation(sides.reference, theirs)));
  if (!describe.match().communicators[to_size(difference.comm)].repaired.empty()) {
    finding.severity = Severity::kContractViolation;
    finding.explanation += "; they stand in one group, and NCCL puts the calls of a group in an order of its own, so this run can "
                           "end; its documentation asks for one order all the same";
  }
  finding.fix = "issue the calls in one order that all ranks share: sort by name or index what they walk over, not by hash or arrival";
  finding.operations = {describe.view(sides.other, ours), describe.view(sides.reference, theirs)};
}

/// Who must take part differs between the ways to make a communicator.
std::string_view fix_of_creation(OpKind kind) {
  if (kind == OpKind::kInit) return "let every process that is to be a member join: the size given at the call counts them, and all wait for the last";
  if (kind == OpKind::kShrink) return "call the shrink on every rank that stays: only those that are left out may skip it";
  if (kind == OpKind::kGrow) return "call the grow on every member so far and on every rank that comes to them";
  return fix_of_imbalance("creation_not_joined");
}

void describe_imbalance(const Describer& describe, const CommunicatorDifference& difference, const Deviation& deviation,
                        const Sides& sides, Finding& finding) {
  const Edit& first = deviation.alignment.edits.front();
  const bool missing = first.kind == EditKind::kMissing;
  const ProgramIndex caller = missing ? sides.reference : sides.other;
  const std::uint32_t call = missing ? (*sides.reference_calls)[first.reference] : (*sides.other_calls)[first.other];
  const Imbalance imbalance =
      missing ? classify_missing(describe, sides, deviation) : classify_extra(describe, sides, deviation);
  const std::vector<std::int32_t> deviating = ranks_of(describe.job(), deviation.deviating);
  const std::vector<std::int32_t> others = ranks_of(describe.job(), deviation.conforming);
  const Operation& operation = describe.operation(caller, call);
  finding.verdict = Verdict::kImbalance;
  finding.finding_class = imbalance.finding_class;
  finding.severity = Severity::kCertain;
  const std::string subject = ranks_text(deviating);
  const bool one = deviating.size() == 1;
  if (missing) {
    finding.title = fmt::format("{} {} not make {} #{} on {}, which {} make{}", subject, one ? "does" : "do",
                                op_name(operation.kind), difference.sequences.first + first.reference, describe.communicator(difference.comm),
                                ranks_text(others), others.size() == 1 ? "s" : "");
  } else {
    finding.title = fmt::format("{} make{} an extra {} #{} on {}, which {} {} not make", subject, one ? "s" : "",
                                op_name(operation.kind), difference.sequences.first + first.other, describe.communicator(difference.comm),
                                ranks_text(others), others.size() == 1 ? "does" : "do");
  }
  const ProgramEnd end = describe.job().program(sides.other).end;
  const auto calls_of = [](std::size_t count) { return fmt::format("{} call{}", count, count == 1 ? "" : "s"); };
  finding.explanation = fmt::format(
      "calls on {} differ: {} make{} {}, {} make{} {}; {} {} {}{}; {}", describe.communicator(difference.comm), subject,
      one ? "s" : "", calls_of(sides.other_calls->size() + difference.sequences.first), ranks_text(others), others.size() == 1 ? "s" : "",
      calls_of(sides.reference_calls->size() + difference.sequences.first), missing ? "missing is" : "surplus is", describe.arguments(operation),
      fmt::format("#{}", difference.sequences.first + (missing ? first.reference : first.other)), describe.from_site(operation), imbalance.reason);
  if (missing && end.kind == EndKind::kExited && end.status > 0 && first.other == sides.other_calls->size()) {
    finding.explanation += fmt::format("; {} exited with status {}", ranks_text(std::span(deviating).first(1)), end.status);
  }
  finding.fix = imbalance.finding_class == "creation_not_joined" ? fix_of_creation(operation.kind) : fix_of_imbalance(imbalance.finding_class);
  finding.operations = {describe.view(caller, call)};
}

}  // namespace

std::string_view fix_of_imbalance(std::string_view finding_class) {
  if (finding_class == "count_differs_by_local_state") {
    return "make the number of calls on a group independent of what a rank owns: combine locally over the loop and call once "
           "after it, or let every member run the same number of rounds (keep empty items)";
  }
  if (finding_class == "uneven_iterations") {
    return "give every rank the same number of batches (drop or pad the last), or let all ranks agree to stop before the next round";
  }
  if (finding_class == "rank_gated_call") {
    return "move the call out of the condition, or make the condition the same on every member of the group";
  }
  if (finding_class == "early_exit") {
    return "let the rank that leaves tell the others first (agree on an error flag), so that all leave at the same call";
  }
  if (finding_class == "creation_not_joined") {
    return "call the creation on every rank of the parent, members or not";
  }
  return "make the call on every member of the group, or on none: the condition around it may not depend on local state";
}

Finding deviation_finding(const Describer& describe, const CommunicatorDifference& difference,
                          const Deviation& deviation) {
  const Job& job = describe.job();
  const Sides sides = sides_of(difference, deviation);
  const Edit& first = deviation.alignment.edits.front();
  Finding finding;
  if (is_permutation(describe, sides, deviation.alignment) || is_reordered_tail(describe, sides, deviation.alignment)) {
    describe_order(describe, difference, deviation, sides, finding);
    finding.divergent_meaning = DivergentMeaning::kMinority;
  } else if (first.kind == EditKind::kSubstituted) {
    describe_mismatch(describe, difference, deviation, sides, finding);
    finding.divergent_meaning = DivergentMeaning::kMinority;
  } else {
    describe_imbalance(describe, difference, deviation, sides, finding);
    finding.divergent_meaning =
        first.kind == EditKind::kMissing ? DivergentMeaning::kMissing : DivergentMeaning::kExtra;
  }
  finding.communicator = describe.communicator_view(difference.comm);
  const bool shown_by_reference = first.reference < sides.reference_calls->size() && first.kind != EditKind::kExtra;
  const ProgramIndex shown = shown_by_reference ? sides.reference : sides.other;
  const std::uint32_t shown_call =
      shown_by_reference ? (*sides.reference_calls)[first.reference] : (*sides.other_calls)[first.other];
  finding.position = describe.position(shown, shown_call);
  finding.divergent_ranks = ranks_of(job, deviation.deviating);
  // A communicator lists its members: those that do not come to its making are the ones to look at, however many they are.
  // A second making is a call like others.
  const bool never_joined = first.kind == EditKind::kMissing && describe.operation(shown, shown_call).kind == OpKind::kInit &&
                            sides.other_calls->empty();
  if (never_joined) finding.divergent_meaning = DivergentMeaning::kAbsent;
  if (!deviation.has_majority && !never_joined) {
    const std::vector<std::int32_t> conforming = ranks_of(job, deviation.conforming);
    finding.divergent_ranks.insert(finding.divergent_ranks.end(), conforming.begin(), conforming.end());
    std::ranges::sort(finding.divergent_ranks);
    finding.divergent_meaning = DivergentMeaning::kNoMajority;
  }
  CallCounts counts = communicator_counts(describe, difference.comm);
  const bool unequal = std::ranges::adjacent_find(counts.by_rank, [](const auto& a, const auto& b) {
                         return a.second != b.second;
                       }) != counts.by_rank.end();
  // Totals may agree where ranks take different branches: the lines then tell them apart.
  const bool other_branch = first.kind == EditKind::kSubstituted && counts.by_rank.size() > 1 &&
                            (finding.finding_class == "kind_differs" ||
                             describe.operation(sides.reference, (*sides.reference_calls)[first.reference]).site !=
                                 describe.operation(sides.other, (*sides.other_calls)[first.other]).site);
  if (unequal) finding.counts.push_back(std::move(counts));
  if (unequal || other_branch) {
    for (CallCounts& site : differing_site_counts(describe, difference.comm, sides.reference, sides.other)) {
      finding.counts.push_back(std::move(site));
    }
  }
  for (const OperationView& operation : finding.operations) {
    const Evidence evidence{operation.file, operation.line};
    if (!evidence.file.empty()) finding.evidence.push_back(evidence);
  }
  return finding;
}

void explain_count_difference(const Describer& describe, const CountDifference& difference, Finding& finding) {
  const Job& job = describe.job();
  const Operation& call = describe.operation(difference.more, difference.operation);
  const std::int32_t more = job.program(difference.more).rank;
  const std::int32_t fewer = job.program(difference.fewer).rank;
  const std::uint32_t count_more = count_like(describe, difference.more, call.comm, difference.more, difference.operation);
  const std::uint32_t count_fewer = count_like(describe, difference.fewer, call.comm, difference.more, difference.operation);
  CallCounts counts = communicator_counts(describe, call.comm);
  finding.explanation = fmt::format("calls on {} differ: rank {} makes {}, rank {} makes {}", describe.communicator(call.comm),
                                    more, counts.by_rank[more], fewer, counts.by_rank[fewer]);
  finding.counts.push_back(std::move(counts));
  if (call.site != SiteIndex{}) {
    finding.explanation += fmt::format("; {}{} is made {} by rank {} and {} by rank {}", op_name(call.kind),
                                       describe.from_site(call), times_text(count_more), more, times_text(count_fewer), fewer);
  }
  if (count_fewer > 0) {
    finding.finding_class = "count_differs_by_local_state";
    const auto witness =
        find_loop_witness(describe, difference.more, difference.fewer, call.site, count_more, count_fewer);
    if (witness) {
      const std::string where =
          witness->comm_a == witness->comm_b
              ? fmt::format("on {} too", describe.communicator(witness->comm_a))
              : fmt::format("on {} and {}", describe.communicator(witness->comm_a), describe.communicator(witness->comm_b));
      finding.explanation += fmt::format(
          ", and so is its {} {}: {} runs a loop {} on rank {} and {} on rank {}", op_name(witness->kind), where,
          witness->function, times_text(count_more), more, times_text(count_fewer), fewer);
    }
    finding.explanation += "; what it loops over, or the branch around it, depends on what the rank owns";
  } else {
    finding.finding_class = "call_skipped";
    finding.explanation += fmt::format("; rank {} never makes it", fewer);
  }
  finding.fix = fix_of_imbalance(finding.finding_class);
  for (CallCounts& site : differing_site_counts(describe, call.comm, difference.more, difference.fewer)) {
    finding.counts.push_back(std::move(site));
  }
}

Finding lost_difference_finding(const Describer& describe, CommIndex comm, const LostDifference& difference) {
  Finding finding{.verdict = Verdict::kMismatch, .finding_class = "differs_before_record", .severity = Severity::kCertain};
  const bool has_majority = [&] {
    std::size_t ranks = 0;
    for (const auto& party : difference.parties) ranks += party.size();
    return 2 * difference.parties.front().size() > ranks;
  }();
  for (std::size_t p = has_majority ? 1 : 0; p < difference.parties.size(); ++p) {
    finding.divergent_ranks.insert(finding.divergent_ranks.end(), difference.parties[p].begin(), difference.parties[p].end());
  }
  std::ranges::sort(finding.divergent_ranks);
  finding.divergent_meaning = has_majority ? DivergentMeaning::kMinority : DivergentMeaning::kNoMajority;
  const std::string where = difference.from == difference.to ? fmt::format("at #{}", difference.from)
                                                             : fmt::format("between #{} and #{}", difference.from, difference.to);
  finding.title = fmt::format("{} and {} made different calls on {}, first {}", ranks_text(difference.parties[1]),
                              ranks_text(difference.parties[0]), describe.communicator(comm), where);
  finding.explanation = fmt::format("the fingerprints of the calls on {} agree before #{} and differ after #{}; the records no longer "
                                    "hold the calls between, so what differs is not known",
                                    describe.communicator(comm), difference.from, difference.to);
  finding.fix = "record again with a larger ring (LOCKSTEP_RING), or stop the job sooner, to see the calls themselves";
  finding.communicator = describe.communicator_view(comm);
  return finding;
}

}  // namespace lockstep
