// See the header. The rules, and why (from reports of hangs whose causes became known):
//  1. What a library compared is proof: mismatch errors of torch's wrapper, Horovod, DeepSpeed, DDP.
//  2. A coordinator that lists who did not come is proof of absence. Complementary lists are different branches.
//  3. Memory, signals, hardware, links and disks come before any inference from waiting ranks, wherever their line stands: in a
//     merged log the consequence may be printed first. Aborts by watchdogs (signal 6), closed connections and exceptions about
//     communication are consequences and decide nothing.
//  4. Ranks that wait in one number of one group with other calls or sizes differ. Numbers count per group, and a watchdog's line
//     does not name its group; so numbers that differ are compared only where the status lines name the same group.
//  5. One rank, or ranks that all agree, are no verdict; a rank that is one call ahead is nothing.
//  6. "Most likely caused by incorrect usages of collectives" is printed always; NCCL's warnings of a mismatch are as often
//     caused by transports: both decide nothing.
#include "diagnose/reported_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/rank_ranges.h"

namespace lockstep {
namespace {

/// Reads "ALLREDUCE", "_ALLGATHER_BASE" and "all_gather" as one spelling.
std::string plain_op(std::string_view op) {
  std::string out;
  for (const char c : op) {
    if (c != '_') out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  for (const std::string_view tail : {"base", "intotensor", "tensor", "object", "objectlist", "single", "coalesced", "c"}) {
    if (out.size() > tail.size() + 4 && out.ends_with(tail)) out.resize(out.size() - tail.size());
  }
  return out;
}

bool has_free_size(std::string_view op) {
  const std::string plain = plain_op(op);
  return plain.starts_with("alltoall") || plain.starts_with("gather") || plain.starts_with("scatter") || plain == "send" || plain == "recv";
}

/// Messages and coalesced groups have numbers of their own on each rank.
bool has_own_number(std::string_view op) {
  const std::string plain = plain_op(op);
  return plain.starts_with("send") || plain.starts_with("recv") || plain == "coalesced";
}

class ReportedReader {
 public:
  ReportedReader(const ReportedEvidence& reported, const Job& job) : reported_(reported), job_(job) {}

  std::vector<Draft> run(bool decided) {
    name_groups();
    if (!decided) add_compared();
    add_events();
    if (!decided) {
      add_absent();
      if (drafts_.empty()) add_waits();
      if (drafts_.empty()) add_stacks();
      if (drafts_.empty()) add_counts();
      if (drafts_.empty()) add_pauses();
      if (drafts_.empty() && job_.programs().empty()) add_open();
      if (drafts_.empty() && !job_.programs().empty()) add_hints_to_open();
    }
    for (std::size_t i = 0; i < drafts_.size(); ++i) drafts_[i].first_call = static_cast<std::uint32_t>(i);
    return std::move(drafts_);
  }

 private:
  using Event = ReportedEvent;

  std::vector<const Event*> of(ReportedKind kind) const {
    std::vector<const Event*> events;
    for (const Event& event : reported_.events) {
      if (event.kind == kind) events.push_back(&event);
    }
    return events;
  }

  Evidence evidence(const Event& event) const { return {reported_.files[event.file], event.line}; }

  static std::string who(const Event& event) {
    if (event.rank) return fmt::format("rank {}", *event.rank);
    return event.ranks.empty() ? "a rank" : ranks_text(event.ranks);
  }

  /// Where a rank stands, in words.
  static std::string place(const Event& event) {
    std::string text = event.op.empty() ? "a collective" : event.op;
    if (event.seq) text += fmt::format(" {}", *event.seq);
    if (!event.shape.empty()) text += fmt::format(" of shape [{}]", event.shape);
    if (event.elements_in) text += fmt::format(" ({} elements in, {} out)", *event.elements_in, event.elements_out.value_or(0));
    if (!event.group.empty()) text += fmt::format(" of process group {}", event.group);
    return text;
  }

  Draft& add(Verdict verdict, std::string_view finding_class, Severity severity, std::string title, std::string fix) {
    Finding finding{.verdict = verdict, .finding_class = std::string(finding_class), .severity = severity};
    finding.title = std::move(title);
    finding.fix = std::move(fix);
    drafts_.push_back({.finding = std::move(finding), .stalls = true});
    return drafts_.back();
  }

  void support(Finding& finding, const std::vector<const Event*>& events) const {
    constexpr std::size_t kMostEvidence = 12;
    for (const Event* event : events) {
      if (finding.evidence.size() >= kMostEvidence) break;
      if (std::ranges::find(finding.evidence, evidence(*event)) == finding.evidence.end()) finding.evidence.push_back(evidence(*event));
    }
  }

  /// A watchdog's line and the status line behind it are of one work: the second names the group.
  void name_groups() {
    for (const Event& event : reported_.events) {
      if (event.kind != ReportedKind::kWaits) continue;
      Event wait = event;
      for (const Event& status : reported_.events) {
        if (status.kind != ReportedKind::kProgress || status.rank != event.rank || status.group.empty()) continue;
        if (status.seq && status.seq == event.seq) {
          wait.group = status.group;
          wait.enqueued = status.enqueued;
          wait.completed = status.completed;
        }
      }
      waits_.push_back(std::move(wait));
    }
    // The same work is reported by several lines.
    std::vector<Event> once;
    for (Event& wait : waits_) {
      const bool known = std::ranges::any_of(once, [&](const Event& other) {
        return other.rank == wait.rank && other.seq == wait.seq && plain_op(other.op) == plain_op(wait.op) && other.elements_in == wait.elements_in;
      });
      if (!known) once.push_back(std::move(wait));
    }
    waits_ = std::move(once);
  }

  // 1
  void add_compared() {
    const auto sides = of(ReportedKind::kSide);
    const auto told = of(ReportedKind::kDiffers);
    if (sides.empty() && told.empty()) return;
    std::vector<const Event*> by_rank;
    for (const Event* side : sides) {
      const bool known = std::ranges::any_of(by_rank, [&](const Event* other) { return other->rank == side->rank; });
      if (!known) by_rank.push_back(side);
    }
    std::string words;
    std::set<std::int32_t> ranks;
    bool ops_differ = false, seqs_differ = false;
    for (const Event* side : by_rank) {
      words += fmt::format("{}{} is in {}", words.empty() ? "" : ", ", who(*side), place(*side));
      if (side->rank) ranks.insert(*side->rank);
      ops_differ = ops_differ || (!side->op.empty() && !by_rank.front()->op.empty() && plain_op(side->op) != plain_op(by_rank.front()->op)) ||
                   side->shape != by_rank.front()->shape;
      seqs_differ = seqs_differ || (side->seq && by_rank.front()->seq && *side->seq != *by_rank.front()->seq);
    }
    for (const Event* event : told) {
      ranks.insert(event->ranks.begin(), event->ranks.end());
      if (by_rank.empty()) words += (words.empty() ? "" : "; ") + event->text;
    }
    // Numbers that differ where the calls are not told: one rank made more calls than the other.
    const bool only_numbers = seqs_differ && !ops_differ;
    Draft& draft = add(only_numbers ? Verdict::kImbalance : Verdict::kMismatch, only_numbers ? "count_differs_by_local_state" : class_of(by_rank, told),
                       Severity::kCertain, fmt::format("a library compared the calls, and they differ: {}", words.substr(0, 600)),
                       "let every member of the group take the same branch before this call, with the same sizes and types");
    draft.finding.explanation = draft.finding.title;
    for (const Event* event : of(ReportedKind::kHint)) {
      if (event->text.find("sizes:") != std::string::npos) draft.finding.explanation += "; " + event->text;
    }
    if (by_rank.size() == 1 && told.empty()) draft.finding.explanation += "; the other side is not in the log";
    support(draft.finding, sides);
    support(draft.finding, told);
    set_minority(by_rank, ranks, draft.finding);
  }

  static std::string_view class_of(const std::vector<const Event*>& sides, const std::vector<const Event*>& told) {
    if (sides.size() < 2) {
      const bool sizes = std::ranges::any_of(told, [](const Event* event) {
        return event->text.find("SIZE") != std::string::npos || event->text.find("shape") != std::string::npos || event->text.find("params") != std::string::npos;
      });
      return sizes ? "size_differs" : "kind_differs";
    }
    return plain_op(sides[0]->op) == plain_op(sides[1]->op) && sides[0]->shape != sides[1]->shape ? "size_differs" : "kind_differs";
  }

  /// With three or more sides the fewer of them; with two, both.
  static void set_minority(const std::vector<const Event*>& sides, const std::set<std::int32_t>& ranks, Finding& finding) {
    std::map<std::string, std::vector<std::int32_t>> parties;
    for (const Event* side : sides) {
      if (side->rank) parties[plain_op(side->op) + "|" + side->shape + "|" + fmt::format("{}", side->seq.value_or(-1))].push_back(*side->rank);
    }
    std::size_t most = 0, total = 0;
    const std::string* majority = nullptr;
    for (const auto& [key, members] : parties) {
      total += members.size();
      if (members.size() <= most) continue;
      most = members.size();
      majority = &key;
    }
    finding.divergent_ranks.assign(ranks.begin(), ranks.end());
    finding.divergent_meaning = DivergentMeaning::kNoMajority;
    if (majority == nullptr || 2 * most <= total || parties.size() < 2) return;
    finding.divergent_ranks.clear();
    for (const auto& [key, members] : parties) {
      if (&key != majority) finding.divergent_ranks.insert(finding.divergent_ranks.end(), members.begin(), members.end());
    }
    std::ranges::sort(finding.divergent_ranks);
    finding.divergent_meaning = DivergentMeaning::kMinority;
  }

  // 3
  void add_events() {
    std::vector<const Event*> proving;
    for (const Event* event : of(ReportedKind::kEvent)) {
      if (event->proves) proving.push_back(event);
    }
    if (proving.empty()) {
      // A broken connection without a rank that waits elsewhere is all there is: the peer went away first.
      const auto events = of(ReportedKind::kEvent);
      const auto broken = std::ranges::find_if(events, [](const Event* event) { return event->finding_class == "peer_crashed" && !event->seq; });
      if (broken == events.end() || !drafts_.empty() || !waits_.empty() || !of(ReportedKind::kAbsent).empty() || !of(ReportedKind::kProgress).empty()) return;
      if (!job_.programs().empty()) return;
      proving.push_back(*broken);
    }
    // A cause before its symptoms: by the order of the classes, then of the lines.
    const auto order = [](const Event* event) {
      constexpr std::string_view kOrder[] = {"hardware_fault", "out_of_memory", "host_frozen", "library_fault", "network_fault", "peer_crashed"};
      return std::ranges::find(kOrder, event->finding_class) - std::begin(kOrder);
    };
    std::ranges::stable_sort(proving, {}, order);
    const Event& first = *proving.front();
    std::string words = fmt::format("{}{}", first.rank ? fmt::format("rank {}: ", *first.rank) : "", first.text);
    Draft& draft = add(Verdict::kOtherCause, first.finding_class, Severity::kCertain, words, fix_of(first.finding_class));
    Finding& finding = draft.finding;
    finding.explanation = fmt::format("{}: this is enough for a job to stop; ranks that wait in a collective afterwards are its victims, and "
                                      "the order of calls need not be at fault", words);
    std::set<std::int32_t> ranks;
    for (const Event* event : proving) {
      if (event->finding_class == first.finding_class && event->rank) ranks.insert(*event->rank);
    }
    finding.divergent_ranks.assign(ranks.begin(), ranks.end());
    if (!ranks.empty()) finding.divergent_meaning = DivergentMeaning::kAbsent;
    constexpr std::size_t kMostTold = 4;
    for (std::size_t i = 1; i < proving.size() && i < kMostTold; ++i) finding.explanation += "; also: " + proving[i]->text;
    add_standing(finding);
    support(finding, proving);
  }

  static std::string fix_of(std::string_view finding_class) {
    if (finding_class == "library_fault") return "look at the driver and runtime of that host: versions, kernel log, limits (/dev/shm)";
    if (finding_class == "out_of_memory") return "give the rank that ran out of memory more, or less to do; then run again";
    if (finding_class == "hardware_fault") return "look at the device and its links: kernel log (Xid), nvidia-smi -q, NVLink and ECC counters";
    if (finding_class == "network_fault") return "look at the fabric: port counters, cables, switch and NIC logs of the two ends";
    if (finding_class == "host_frozen") return "free or mend the file system that the rank writes to";
    return "find out why the process ended: its own log and stack, the kernel log, the scheduler";
  }

  // 2
  void add_absent() {
    const auto events = of(ReportedKind::kAbsent);
    if (events.empty()) return;
    std::set<std::int32_t> absent;
    std::map<std::vector<std::int32_t>, std::vector<const Event*>> ready;
    std::string words;
    std::size_t told = 0;
    for (const Event* event : events) {
      if (event->finding_class == "ready") ready[event->ranks].push_back(event);
      else absent.insert(event->ranks.begin(), event->ranks.end());
      if (told++ < 6) words += fmt::format("{}{} {}: {}", words.empty() ? "" : "; ", event->op, event->finding_class == "ready" ? "is ready on" : "waits for", ranks_text(event->ranks));
    }
    if (ready.size() > 1) return add_branches(events, ready, words);
    // Ranks are numbered without gaps: those below the largest that are not ready are missing.
    if (ready.size() == 1 && absent.empty()) {
      const std::vector<std::int32_t>& known = ready.begin()->first;
      constexpr std::int32_t kMostMissing = 65536;
      for (std::int32_t rank = 0; rank < std::min(known.back(), kMostMissing); ++rank) {
        if (!std::ranges::binary_search(known, rank)) absent.insert(rank);
      }
    }
    // By rank, the tensors that it lacks: ranks that lack other tensors took other branches.
    std::map<std::string, std::set<std::int32_t>> lacking;
    for (const Event* event : events) lacking[event->op].insert(event->ranks.begin(), event->ranks.end());
    const bool complementary = lacking.size() > 1 && absent.size() > 1 && std::ranges::all_of(lacking, [&](const auto& entry) { return entry.second.size() < absent.size(); });
    const std::vector<std::int32_t> ranks(absent.begin(), absent.end());
    if (complementary) {
      Draft& draft = add(Verdict::kMismatch, "kind_differs", Severity::kCertain, fmt::format("{} submit different tensors: {}", ranks_text(ranks), words),
                         "let all ranks submit the same tensors in each step: look for the branch that some take");
      draft.finding.explanation = draft.finding.title;
      draft.finding.divergent_ranks = ranks;
      draft.finding.divergent_meaning = DivergentMeaning::kNoMajority;
      support(draft.finding, events);
      return;
    }
    if (ranks.empty()) {
      Draft& draft = add(Verdict::kInsufficient, "evidence_missing", Severity::kNote, words, next_evidence());
      draft.finding.explanation = words + "; which ranks are missing depends on how many the job has";
      support(draft.finding, events);
      return;
    }
    Draft& draft = add(Verdict::kImbalance, "never_arrived", Severity::kCertain,
                       fmt::format("{} did not come to {}", ranks_text(ranks), events.front()->op),
                       fmt::format("look where {} stand: log and stack (py-spy dump) of each", ranks_text(ranks)));
    draft.finding.explanation = fmt::format("the coordinator lists those that did not come: {}", words);
    draft.finding.divergent_ranks = ranks;
    draft.finding.divergent_meaning = DivergentMeaning::kAbsent;
    support(draft.finding, events);
  }

  void add_branches(const std::vector<const Event*>& events, const std::map<std::vector<std::int32_t>, std::vector<const Event*>>& ready, const std::string& words) {
    std::set<std::int32_t> all;
    const std::vector<std::int32_t>* largest = nullptr;
    for (const auto& [ranks, unused] : ready) {
      all.insert(ranks.begin(), ranks.end());
      if (largest == nullptr || ranks.size() > largest->size()) largest = &ranks;
    }
    Draft& draft = add(Verdict::kMismatch, "kind_differs", Severity::kCertain, fmt::format("ranks submit different tensors: {}", words),
                       "let all ranks submit the same tensors in each step: look for the branch that some take");
    draft.finding.explanation = draft.finding.title;
    for (const std::int32_t rank : all) {
      if (std::ranges::find(*largest, rank) == largest->end()) draft.finding.divergent_ranks.push_back(rank);
    }
    draft.finding.divergent_meaning = DivergentMeaning::kMinority;
    support(draft.finding, events);
  }

  // 4 and 5
  void add_waits() {
    if (add_unequal_waits() || add_unequal_progress() || add_unequal_calls()) return;
  }

  std::vector<const Event*> waits() const {
    std::vector<const Event*> events;
    for (const Event& wait : waits_) events.push_back(&wait);
    return events;
  }

  /// One number (of one group, or of groups that are not named) with other operations or sizes.
  bool add_unequal_waits() {
    std::map<std::pair<std::string, std::int64_t>, std::vector<const Event*>> by_place;
    for (const Event& wait : waits_) {
      if (wait.seq && wait.rank && !has_own_number(wait.op)) by_place[{wait.group, *wait.seq}].push_back(&wait);
    }
    for (const auto& [at, events] : by_place) {
      std::set<std::int32_t> ranks;
      bool differ = false, ops_differ = false;
      for (const Event* event : events) {
        ranks.insert(*event->rank);
        const Event& first = *events.front();
        const bool op = plain_op(event->op) != plain_op(first.op);
        const bool size = !op && !has_free_size(first.op) && event->elements_in && first.elements_in && *event->elements_in != *first.elements_in;
        // Another operation under one number, in groups that are not named: other groups may stand at an equal number by
        // chance, where it is small and few ranks are there.
        constexpr std::int64_t kTellingNumber = 16;
        differ = differ || size || (op && (!at.first.empty() || at.second >= kTellingNumber || events.size() > 2));
        ops_differ = ops_differ || op;
      }
      if (!differ || ranks.size() < 2) continue;
      std::string words;
      for (const Event* event : events) words += fmt::format("{}{} waits in {}", words.empty() ? "" : ", ", who(*event), place(*event));
      Draft& draft = add(Verdict::kMismatch, ops_differ ? "kind_differs" : "size_differs", Severity::kCertain,
                         fmt::format("ranks wait in call {} with different arguments: {}", at.second, words.substr(0, 500)),
                         "agree on the size first (gather the sizes, or pad to the largest), and take the same branch on all ranks");
      draft.finding.explanation = draft.finding.title;
      if (at.first.empty()) draft.finding.explanation += "; the lines do not name the process group, but number and operation agree";
      set_minority_of_waits(events, draft.finding);
      support(draft.finding, events);
      return true;
    }
    return false;
  }

  static void set_minority_of_waits(const std::vector<const Event*>& events, Finding& finding) {
    std::map<std::string, std::set<std::int32_t>> parties;
    for (const Event* event : events) parties[fmt::format("{}|{}", plain_op(event->op), event->elements_in.value_or(-1))].insert(*event->rank);
    const auto largest = std::ranges::max_element(parties, {}, [](const auto& party) { return party.second.size(); });
    std::size_t total = 0;
    for (const auto& [key, ranks] : parties) total += ranks.size();
    const bool majority = 2 * largest->second.size() > total;
    for (const auto& party : parties) {
      if (majority && &party == &*largest) continue;
      finding.divergent_ranks.insert(finding.divergent_ranks.end(), party.second.begin(), party.second.end());
    }
    std::ranges::sort(finding.divergent_ranks);
    finding.divergent_meaning = majority ? DivergentMeaning::kMinority : DivergentMeaning::kNoMajority;
  }

  /// What TORCH_DISTRIBUTED_DEBUG=DETAIL prints before each call. Numbers count per group: where a rank has one twice, the calls
  /// are of several groups, and nothing is compared.
  bool add_unequal_calls() {
    std::map<std::int64_t, std::map<std::int32_t, const Event*>> by_number;
    for (const Event* call : of(ReportedKind::kCalls)) {
      if (!call->seq || call->op.empty()) continue;
      if (!by_number[*call->seq].emplace(*call->rank, call).second) return false;
    }
    bool agreed = false;
    for (const auto& [number, by_rank] : by_number) {
      std::vector<const Event*> events;
      bool differ = false;
      for (const auto& [rank, call] : by_rank) {
        events.push_back(call);
        differ = differ || plain_op(call->op) != plain_op(events.front()->op) || (call->shape != events.front()->shape && !has_free_size(call->op));
      }
      if (!differ) {
        agreed = agreed || events.size() > 1;
        continue;
      }
      // The lines do not name the group: a small number alone may stand for calls of several.
      constexpr std::int64_t kTellingNumber = 16;
      if (!agreed && number < kTellingNumber) continue;
      std::string words;
      for (const Event* event : events) words += fmt::format("{}{} calls {}", words.empty() ? "" : ", ", who(*event), place(*event));
      Draft& draft = add(Verdict::kMismatch, class_of(events, {}), Severity::kCertain, fmt::format("ranks begin different calls under number {}: {}", number, words.substr(0, 500)),
                         "let every member of the group take the same branch before this call, with the same sizes");
      draft.finding.explanation = draft.finding.title;
      std::set<std::int32_t> ranks;
      for (const auto& [rank, call] : by_rank) ranks.insert(rank);
      set_minority(events, ranks, draft.finding);
      support(draft.finding, events);
      return true;
    }
    return false;
  }

  struct Progress {
    std::int64_t enqueued = -1, completed = -1;
    const Event* event = nullptr;
    const Event* wait = nullptr;
  };

  /// Members of one named group that are far apart. Lines without a group belong to the only group there is.
  bool add_unequal_progress() {
    std::map<std::string, std::map<std::int32_t, Progress>> groups;
    std::set<std::string> named;
    for (const Event* event : of(ReportedKind::kProgress)) {
      if (!event->group.empty()) named.insert(event->group);
    }
    for (const Event* event : of(ReportedKind::kProgress)) {
      std::vector<std::int32_t> ranks = event->ranks;
      if (event->rank) ranks.push_back(*event->rank);
      const std::string group = event->group.empty() && named.size() == 1 ? *named.begin() : event->group;
      for (const std::int32_t rank : ranks) {
        Progress& progress = groups[group][rank];
        if (event->enqueued.value_or(-1) < progress.enqueued) continue;
        progress.enqueued = event->enqueued.value_or(-1);
        progress.completed = std::max(progress.completed, event->completed.value_or(-1));
        progress.event = event;
        for (const Event& wait : waits_) {
          if (wait.rank == rank && (wait.group == group || wait.group.empty())) progress.wait = &wait;
        }
      }
    }
    for (const auto& [group, ranks] : groups) {
      if (group.empty() || ranks.size() < 2) continue;
      // Messages are counted with the collectives there, and not alike on all ranks.
      const bool has_messages = std::ranges::any_of(ranks, [](const auto& entry) {
        return entry.second.wait != nullptr && has_own_number(entry.second.wait->op);
      });
      if (has_messages) continue;
      if (add_group_progress(group, ranks)) return true;
    }
    return false;
  }

  bool add_group_progress(const std::string& group, const std::map<std::int32_t, Progress>& ranks) {
    std::int64_t stuck = -1, far = -1;  // the lowest call that a rank waits in; the furthest that one has completed
    for (const auto& [rank, progress] : ranks) {
      if (progress.event->seq && (stuck < 0 || *progress.event->seq < stuck)) stuck = *progress.event->seq;
      far = std::max(far, progress.completed);
    }
    std::vector<const Event*> events;
    std::string words;
    for (const auto& [rank, progress] : ranks) {
      events.push_back(progress.event);
      if (events.size() <= 10) {
        words += fmt::format("{}rank {} enqueued {} and completed {}", words.empty() ? "" : ", ", rank, progress.enqueued, progress.completed);
      }
    }
    // Ranks that never enqueued the call that the others wait in, and are not behind by their own watchdog's delay.
    std::vector<std::int32_t> absent;
    std::size_t present = 0;
    for (const auto& [rank, progress] : ranks) {
      if (stuck >= 0 && progress.enqueued >= 0 && progress.enqueued < stuck && progress.completed == progress.enqueued) absent.push_back(rank);
      else if (progress.enqueued >= stuck) ++present;
    }
    std::string op;
    for (const Event& wait : waits_) {
      if (wait.seq && *wait.seq == stuck) op = wait.op;
    }
    if (!absent.empty() && present > 0) {
      Draft& draft = add(Verdict::kImbalance, "never_arrived", Severity::kCertain,
                         fmt::format("{} did not enqueue {} {} on process group {}, in which the others wait", ranks_text(absent), op.empty() ? "call" : op, stuck, group),
                         fmt::format("look for the branch that {} took: a stack of each (py-spy dump)", ranks_text(absent)));
      draft.finding.explanation = fmt::format("on process group {}: {}", group, words);
      draft.finding.divergent_ranks = absent;
      draft.finding.divergent_meaning = DivergentMeaning::kMissing;
      support(draft.finding, events);
      return true;
    }
    // A rank that has completed calls which another still waits in made other calls under these numbers.
    if (stuck >= 0 && far >= stuck + 1) {
      std::set<std::int32_t> all;
      for (const auto& [rank, progress] : ranks) {
        all.insert(rank);
        if (progress.wait != nullptr) words += fmt::format(", rank {} waits in {}", rank, place(*progress.wait));
      }
      Draft& draft = add(Verdict::kMismatch, "kind_differs", Severity::kCertain,
                         fmt::format("on process group {} a rank has completed call {} while another waits in call {}", group, far, stuck),
                         "compare the calls of these ranks from there on: run with TORCH_DISTRIBUTED_DEBUG=DETAIL, or with the Flight Recorder");
      draft.finding.explanation = fmt::format("{}: {}", draft.finding.title, words);
      draft.finding.divergent_ranks.assign(all.begin(), all.end());
      draft.finding.divergent_meaning = DivergentMeaning::kNoMajority;
      support(draft.finding, events);
      return true;
    }
    return false;
  }

  void add_stacks() {
    std::map<std::int32_t, const Event*> by_rank;
    for (const Event* event : of(ReportedKind::kStack)) {
      if (event->rank) by_rank.try_emplace(*event->rank, event);
    }
    std::map<std::string, std::vector<std::int32_t>> parties;
    for (const auto& [rank, event] : by_rank) parties[plain_op(event->op)].push_back(rank);
    if (parties.size() < 2) return;
    std::string words;
    std::vector<const Event*> events;
    for (const auto& [rank, event] : by_rank) {
      events.push_back(event);
      if (events.size() <= 6) words += fmt::format("{}rank {} stands in {} ({})", words.empty() ? "" : "; ", rank, event->op, event->text);
    }
    Draft& draft = add(Verdict::kMismatch, "kind_differs", Severity::kCertain, fmt::format("the stacks stand in different calls: {}", words.substr(0, 400)),
                       "let all ranks of the group take the same branch before this call");
    draft.finding.explanation = fmt::format("{}; stacks do not name the group: if the calls are on different groups, their order is what differs", words);
    const auto largest = std::ranges::max_element(parties, {}, [](const auto& party) { return party.second.size(); });
    const bool majority = 2 * largest->second.size() > by_rank.size();
    for (const auto& party : parties) {
      if (majority && &party == &*largest) continue;
      draft.finding.divergent_ranks.insert(draft.finding.divergent_ranks.end(), party.second.begin(), party.second.end());
    }
    std::ranges::sort(draft.finding.divergent_ranks);
    draft.finding.divergent_meaning = majority ? DivergentMeaning::kMinority : DivergentMeaning::kNoMajority;
    support(draft.finding, events);
  }

  /// NCCL's RAS counts launches. One more or less is normal in a job that runs.
  void add_counts() {
    const auto events = of(ReportedKind::kCount);
    std::int64_t least = -1, most = -1;
    std::string op;
    std::set<std::int32_t> ranks;
    for (const Event* event : events) {
      if (!event->op.empty()) op = event->op;
      ranks.insert(event->ranks.begin(), event->ranks.end());
      if (!event->seq) continue;
      least = least < 0 ? *event->seq : std::min(least, *event->seq);
      most = std::max(most, *event->seq);
    }
    if (least < 0 || least == most) return;
    std::string words;
    std::size_t told = 0;
    for (const Event* event : events) {
      if (told++ < 8) words += (words.empty() ? "" : "; ") + event->text;
    }
    const bool far = most - least >= 2;
    Draft& draft = add(far ? Verdict::kImbalance : Verdict::kInsufficient, far ? "count_differs_by_local_state" : "unfinished_snapshot",
                       far ? Severity::kCertain : Severity::kNote,
                       fmt::format("ranks launched {} up to {} and up to {}", op, least, most),
                       far ? "compare the calls of the two sides from there on"
                           : "ask RAS again some seconds later (ncclras): if the numbers stand still, collect a stack of the ranks that are behind, which it does not list");
    draft.finding.explanation = words + (far ? "" : "; one call ahead is normal in a job that runs, and the ranks that are listed are the fewer, not the guilty");
    if (far) {
      draft.finding.divergent_ranks.assign(ranks.begin(), ranks.end());
      draft.finding.divergent_meaning = DivergentMeaning::kMinority;
    }
    support(draft.finding, events);
  }

  /// A checkpoint or an evaluation on a rank while others wait: likely, not proven.
  void add_pauses() {
    const auto events = of(ReportedKind::kEvent);
    const auto pause = std::ranges::find_if(events, [&](const Event* event) {
      if (event->finding_class != "slow_peer") return false;
      const bool waits = std::ranges::any_of(waits_, [&](const Event& wait) { return wait.rank == event->rank; });
      const bool stands = std::ranges::any_of(of(ReportedKind::kStack), [&](const Event* stack) { return stack->rank == event->rank; });
      return event->op.empty() || (event->rank && !waits && !(event->op == "stack" && stands));
    });
    if (pause == events.end() || (waits_.empty() && of(ReportedKind::kProgress).empty() && of(ReportedKind::kStack).empty())) return;
    Draft& draft = add(Verdict::kOtherCause, "slow_peer", Severity::kNote, fmt::format("work outside of collectives was going on: {}{}", (*pause)->rank ? who(**pause) + ": " : "", (*pause)->text),
                       "give the timeout of the group more than this work takes, or let all ranks wait for it in a barrier with a long timeout; " + next_evidence());
    draft.finding.explanation = fmt::format("{}; a rank that is busy comes late to a collective, and no call differs", draft.finding.title);
    add_standing(draft.finding);
    support(draft.finding, {*pause});
    support(draft.finding, waits());
  }

  /// By rank, the call that it began last.
  std::vector<const Event*> last_calls() const {
    std::map<std::int32_t, const Event*> last;
    for (const Event* call : of(ReportedKind::kCalls)) {
      const Event*& known = last[*call->rank];
      if (known == nullptr || known->line < call->line) known = call;
    }
    std::vector<const Event*> calls;
    for (const auto& [rank, call] : last) calls.push_back(call);
    return calls;
  }

  void add_standing(Finding& finding) const {
    std::size_t told = 0;
    for (const Event& wait : waits_) {
      if (told++ >= 6) break;
      finding.explanation += fmt::format("; {} waits in {}", who(wait), place(wait));
    }
    told = 0;
    for (const Event* call : last_calls()) {
      if (told++ >= 6) break;
      finding.explanation += fmt::format("; {} had come to {}", who(*call), place(*call));
    }
  }

  std::string next_evidence() const {
    std::string text = "collect the Flight Recorder dumps of all ranks (TORCH_FR_BUFFER_SIZE=2000, before 2.9 TORCH_NCCL_TRACE_BUFFER_SIZE=2000; "
                       "TORCH_NCCL_DUMP_ON_TIMEOUT=1)";
    std::set<std::int32_t> seen;
    for (const Event& event : reported_.events) {
      if (event.rank) seen.insert(*event.rank);
    }
    text += seen.empty() ? ", or the logs of all ranks" : fmt::format(", or the logs and stacks (py-spy dump) of the ranks other than {}",
                                                                      ranks_text(std::vector<std::int32_t>(seen.begin(), seen.end())));
    return text;
  }

  /// 5: what is known, and what would decide.
  void add_open() {
    std::string words;
    std::size_t told = 0;
    std::vector<const Event*> events;
    const auto tell = [&](const Event& event, const std::string& text) {
      events.push_back(&event);
      if (told++ < 12) words += (words.empty() ? "" : "; ") + text;
    };
    for (const Event& wait : waits_) tell(wait, fmt::format("{} waits in {}", who(wait), place(wait)));
    std::set<std::string> said;
    for (const Event* event : of(ReportedKind::kProgress)) {
      const std::string text = fmt::format("{} enqueued {} and completed {} on process group {}", who(*event), event->enqueued.value_or(-1),
                                           event->completed.value_or(-1), event->group.empty() ? "(not named)" : event->group);
      if (said.insert(text).second) tell(*event, text);
    }
    for (const Event* event : last_calls()) tell(*event, fmt::format("{} had come to {}", who(*event), place(*event)));
    for (const Event* event : of(ReportedKind::kStack)) tell(*event, fmt::format("{} stands in {}", who(*event), event->op));
    for (const Event* event : of(ReportedKind::kHint)) {
      std::string text = event->op == "RAS" ? "RAS: " + event->text : event->text;
      if (!event->ranks.empty()) text += fmt::format(" (read the log of {} first)", ranks_text(event->ranks));
      tell(*event, text);
    }
    for (const Event* event : of(ReportedKind::kEvent)) {
      if (!event->proves) tell(*event, event->rank ? fmt::format("{}: {}", who(*event), event->text) : event->text);
    }
    Draft& draft = add(Verdict::kInsufficient, "evidence_missing", Severity::kNote,
                       words.empty() ? "nothing in it says where the ranks stand" : words.substr(0, 700), next_evidence());
    draft.finding.explanation = why_open(words);
    support(draft.finding, events);
  }

  std::string why_open(const std::string& words) const {
    std::set<std::int32_t> ranks;
    std::set<std::int64_t> numbers;
    bool named = true;
    for (const Event& wait : waits_) {
      if (wait.rank) ranks.insert(*wait.rank);
      if (wait.seq) numbers.insert(*wait.seq);
      named = named && !wait.group.empty();
    }
    std::string text = words;
    if (ranks.size() == 1) text += "; one rank alone shows no difference";
    if (ranks.size() > 1 && numbers.size() <= 1) text += "; the ranks that are seen agree";
    if (numbers.size() > 1 && !named) text += "; numbers count per process group, and the lines do not say which group each is of";
    if (numbers.size() > 1 && named) text += "; they are of different process groups, or one call apart, which is normal";
    if (!of(ReportedKind::kHint).empty()) text += "; warnings of NCCL about a mismatch are as often caused by the transport";
    return text;
  }

  /// Calls were read, and they do not decide: warnings beside them are worth telling.
  void add_hints_to_open() {
    std::string words;
    std::vector<const Event*> events = of(ReportedKind::kHint);
    for (const Event* event : events) words += (words.empty() ? "" : "; ") + event->text;
    if (words.empty()) return;
    Draft& draft = add(Verdict::kInsufficient, "evidence_missing", Severity::kNote, words.substr(0, 700), next_evidence());
    draft.finding.explanation = words + "; the calls that are in the log do not decide it";
    support(draft.finding, events);
  }

  const ReportedEvidence& reported_;
  const Job& job_;
  std::vector<Event> waits_;
  std::vector<Draft> drafts_;
};

}  // namespace

std::vector<Draft> reported_drafts(const ReportedEvidence& reported, const Job& job, bool decided) {
  if (reported.empty()) return {};
  return ReportedReader(reported, job).run(decided);
}

}  // namespace lockstep
