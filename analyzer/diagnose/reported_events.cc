// What logs say beside calls: memory, signals, hardware, links and disks, which stop a rank by themselves, and work that keeps a
// rank from its next call.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "base/rank_ranges.h"
#include "diagnose/reported_view.h"

namespace lockstep {
namespace {

using Event = ReportedEvent;

std::string fix_of(std::string_view finding_class) {
  if (finding_class == "environment_differs") return "give every rank its own device and the same settings: CUDA_VISIBLE_DEVICES, local ranks, versions";
  if (finding_class == "library_fault") return "look at the driver and runtime of that host: versions, kernel log, limits (/dev/shm)";
  if (finding_class == "out_of_memory") return "give the rank that ran out of memory more, or less to do; then run again";
  if (finding_class == "hardware_fault") return "look at the device and its links: kernel log (Xid), nvidia-smi -q, NVLink and ECC counters";
  if (finding_class == "network_fault") return "look at the fabric: port counters, cables, switch and NIC logs of the two ends";
  if (finding_class == "host_frozen") return "free or mend the file system that the rank writes to, or the host that stands still";
  return "find out why the process ended: its own log and stack, the kernel log, the scheduler";
}

/// A cause before its symptoms.
std::ptrdiff_t order_of(const Event* event) {
  constexpr std::string_view kOrder[] = {"hardware_fault", "out_of_memory", "host_frozen", "library_fault", "environment_differs", "network_fault", "peer_crashed"};
  return std::ranges::find(kOrder, event->finding_class) - std::begin(kOrder);
}

/// A connection between ranks, not one to a data set or a registry.
bool is_of_the_job(std::string_view text) {
  constexpr std::string_view kWords[] = {"NCCL", "nccl", "gloo", "c10d", "TCPStore", "ProcessGroup", "remote process", "torch.distributed", "Net :", "NET/", "Ray worker died"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

/// Nodes that say of themselves that something is wrong with them. What a rank says of its peers names none.
Finding::Nodes nodes_at_fault(const ReportedView::Events& events, std::string_view finding_class) {
  Finding::Nodes nodes;
  std::set<std::string> hosts;
  std::set<std::int32_t> ranks;
  for (const Event* event : events) {
    if (!event->of_node || event->finding_class != finding_class) continue;
    nodes.told = true;
    if (!event->host.empty()) hosts.insert(event->host);
    else if (event->rank) ranks.insert(*event->rank);
  }
  nodes.hosts.assign(hosts.begin(), hosts.end());
  nodes.ranks.assign(ranks.begin(), ranks.end());
  return nodes;
}

}  // namespace

void add_reported_events(ReportedView& view) {
  const auto& events = view.of(ReportedKind::kEvent);
  ReportedView::Events proving;
  for (const Event* event : events) {
    if (event->proves) proving.push_back(event);
  }
  const bool is_told = !proving.empty();
  if (!is_told) {
    // A broken connection without a rank that waits elsewhere is all there is: the peer went away first.
    const auto broken = std::ranges::find_if(events, [](const Event* event) { return event->finding_class == "peer_crashed" && !event->seq && is_of_the_job(event->text); });
    if (broken == events.end() || !view.undecided() || !view.waits().empty() || !view.of(ReportedKind::kAbsent).empty() || !view.of(ReportedKind::kProgress).empty()) return;
    if (!view.job().programs().empty()) return;
    proving.push_back(*broken);
    std::ranges::copy_if(broken + 1, events.end(), std::back_inserter(proving), [](const Event* event) { return event->finding_class == "peer_crashed" && !event->seq && is_of_the_job(event->text); });
  }
  std::ranges::stable_sort(proving, {}, order_of);
  const Event& first = *proving.front();
  const std::string words = fmt::format("{}{}", first.rank ? fmt::format("rank {}: ", *first.rank) : "", first.text);
  Draft& draft = view.add(Verdict::kOtherCause, first.finding_class, Severity::kCertain, words, fix_of(first.finding_class));
  Finding& finding = draft.finding;
  finding.explanation = fmt::format("{}: this is enough for a job to stop; ranks that wait in a collective afterwards are its victims, and "
                                    "the order of calls need not be at fault", words);
  std::set<std::int32_t> ranks;
  for (const Event* event : proving) {
    // Who reports a broken connection is the other end of it.
    if (is_told && event->finding_class == first.finding_class && event->rank) ranks.insert(*event->rank);
  }
  finding.divergent_ranks.assign(ranks.begin(), ranks.end());
  if (!ranks.empty()) finding.divergent_meaning = DivergentMeaning::kAbsent;
  finding.nodes = nodes_at_fault(proving, first.finding_class);
  if (!finding.nodes.hosts.empty()) finding.explanation += fmt::format("; so says host {} itself", fmt::join(finding.nodes.hosts, ", "));
  constexpr std::size_t kMostTold = 4;
  std::set<std::string_view> told{first.text};
  for (const Event* event : proving) {
    if (told.size() < kMostTold && told.insert(event->text).second) finding.explanation += "; also: " + event->text;
  }
  view.add_standing(finding);
  view.support(finding, proving);
}

/// Likely, not proven: a checkpoint, an evaluation or a slow loader on a rank while others wait.
void add_pauses(ReportedView& view) {
  std::set<std::optional<std::int32_t>> waiting, standing;
  for (const Event& wait : view.waits()) waiting.insert(wait.rank);
  for (const Event* stack : view.of(ReportedKind::kStack)) standing.insert(stack->rank);
  // Records of calls show who waits as well.
  for (const Program& program : view.job().programs()) {
    const bool in_flight = std::ranges::any_of(program.operations, [](const Operation& operation) {
      return operation.state == OpState::kEntered || operation.state == OpState::kEnqueued || operation.state == OpState::kStarted;
    });
    if (in_flight) waiting.insert(program.rank);
  }
  if (waiting.empty() && view.of(ReportedKind::kProgress).empty() && standing.empty()) return;
  const auto keeps_busy = [&](const Event* event) {
    if (event->finding_class != "slow_peer") return false;
    if (event->op.empty()) return true;
    return event->rank && !waiting.contains(event->rank) && !(event->op == "stack" && standing.contains(event->rank));
  };
  // One that names a rank which does not wait itself says more than one that names nobody.
  const auto& events = view.of(ReportedKind::kEvent);
  auto pause = std::ranges::find_if(events, [&](const Event* event) { return keeps_busy(event) && event->rank && !waiting.contains(event->rank); });
  if (pause == events.end()) pause = std::ranges::find_if(events, keeps_busy);
  if (pause == events.end()) return;
  const Event& work = **pause;
  Draft& draft = view.add(Verdict::kOtherCause, "slow_peer", Severity::kNote,
                          fmt::format("work outside of collectives was going on: {}{}", work.rank ? who(work) + ": " : "", stack_text(work)),
                          "give the timeout of the group more than this work takes, or let all ranks wait for it in a barrier with a long timeout; " + view.next_evidence());
  draft.finding.explanation = fmt::format("{}; a rank that is busy comes late to a collective, and no call differs{}", draft.finding.title, view.short_timeout());
  const bool others_wait = std::ranges::any_of(waiting, [&](const auto& rank) { return rank != work.rank; }) ||
                           std::ranges::any_of(standing, [&](const auto& rank) { return rank != work.rank; });
  if (work.rank && !waiting.contains(work.rank) && others_wait) {
    draft.finding.divergent_ranks = {*work.rank};
    draft.finding.divergent_meaning = DivergentMeaning::kBehind;
  }
  view.add_standing(draft.finding);
  view.support(draft.finding, {&work});
  view.support_with_waits(draft.finding);
}

}  // namespace lockstep
