// See the header.
#include "diagnose/stopped_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/rank_ranges.h"
#include "diagnose/standstill_findings.h"

namespace lockstep {
namespace {

/// Members that all have to contribute before anyone is done.
bool proves_arrival(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kAllGather || kind == OpKind::kReduceScatter || kind == OpKind::kBarrier ||
         kind == OpKind::kAllToAll || kind == OpKind::kAllToAllV || kind == OpKind::kAllGatherV || kind == OpKind::kReduceScatterV;
}

bool in_flight(const Operation& operation) {
  return !operation.nonblocking() && (operation.state == OpState::kEnqueued || operation.state == OpState::kStarted);
}

bool stands_for_good(const Program& program) {
  return program.end.kind == EndKind::kUnknown && program.end.status == ProgramEnd::kStatusUnknown && !program.tail_missing;
}

bool ends_unseen(const Program& program) {
  return program.end.kind == EndKind::kExited && program.end.status == ProgramEnd::kStatusUnknown && !program.tail_missing;
}

bool overlaps(const std::vector<std::int32_t>& ranks, const std::set<std::int32_t>& others) {
  return std::ranges::any_of(ranks, [&](std::int32_t rank) { return others.contains(rank); });
}

class Joiner {
 public:
  Joiner(const Describer& describe, const ReplayResult& standstill, const std::vector<Cause>& causes, std::vector<Draft>& drafts)
      : describe_(describe), job_(describe.job()), standstill_(standstill), causes_(causes), drafts_(drafts) {}

  void run() {
    // Only a record that was taken while the job stood still says that nothing follows.
    if (std::ranges::none_of(job_.programs(), stands_for_good)) return;
    lagging_ = find_lagging_ranks(job_);
    for (const Cause& cause : causes_) add_cause(cause);
    if (stopped_.empty() && lagging_.empty()) return;
    if (std::ranges::any_of(causes_, [](const Cause& cause) { return cause.kind == CauseKind::kCycle; })) return;
    std::set<std::int32_t> ranks = stopped_;
    for (const LaggingRank& rank : lagging_) ranks.insert(job_.program(rank.program).rank);
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      const Draft& draft = drafts_[i];
      if (draft.finding.severity > Severity::kContractViolation || !overlaps(draft.finding.divergent_ranks, ranks)) continue;
      if (!draft.at_end) return;
      own.push_back(i);
    }
    if (own.size() == 1 && lagging_.empty() && std::ranges::equal(drafts_[own.front()].finding.divergent_ranks, stopped_)) return;
    Draft joined{.finding = finding(ranks, own), .stalls = true, .at_end = true};
    for (std::size_t n = own.size(); n-- > 0;) drafts_.erase(drafts_.begin() + static_cast<std::ptrdiff_t>(own[n]));
    drafts_.push_back(std::move(joined));
  }

 private:
  void add_cause(const Cause& cause) {
    if (cause.kind != CauseKind::kEnded && cause.kind != CauseKind::kStandsElsewhere) return;
    for (const std::int32_t rank : cause.ranks) {
      const ProgramIndex program = job_.program_of_rank(rank);
      if (program == kNoProgram || (!ends_unseen(job_.program(program)) && !stands_for_good(job_.program(program)))) return;
    }
    stopped_.insert(cause.ranks.begin(), cause.ranks.end());
    joined_.ranks.insert(joined_.ranks.end(), cause.ranks.begin(), cause.ranks.end());
    joined_.stuck.insert(joined_.stuck.end(), cause.stuck.begin(), cause.stuck.end());
    joined_.victims.insert(joined_.victims.end(), cause.victims.begin(), cause.victims.end());
  }

  static void tidy(auto& list) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  Finding finding(const std::set<std::int32_t>& ranks, const std::vector<std::size_t>& own) {
    tidy(joined_.ranks);
    tidy(joined_.stuck);
    tidy(joined_.victims);
    std::erase_if(joined_.victims, [&](std::int32_t rank) { return ranks.contains(rank); });
    joined_.kind = CauseKind::kEnded;
    Finding finding;
    if (!stopped_.empty()) {
      finding = own.empty() ? absence_finding(describe_, standstill_, joined_) : std::move(drafts_[own.front()].finding);
    }
    finding.verdict = lagging_.empty() ? Verdict::kImbalance : Verdict::kOtherCause;
    finding.severity = Severity::kCertain;
    finding.finding_class = !lagging_.empty() ? "host_frozen" : misses_messages() ? "message_unmatched" : "never_arrived";
    finding.divergent_ranks.assign(ranks.begin(), ranks.end());
    finding.divergent_meaning = lagging_.empty() ? DivergentMeaning::kMissing : DivergentMeaning::kBehind;
    const std::string who = ranks_text(finding.divergent_ranks);
    const bool one = ranks.size() == 1;
    const BlockedOperation* const waiting = first_waiting();
    const std::string where = waiting == nullptr ? "" : describe_.call(waiting->program, waiting->operation);
    if (!lagging_.empty()) {
      finding.title = fmt::format("{} do{} not complete what {} partners have completed", who, one ? "es" : "", one ? "its" : "their");
    } else {
      finding.title = fmt::format("{} come{} to no further call; {} wait{} in {}", who, one ? "s" : "", ranks_text(joined_.victims),
                                  joined_.victims.size() == 1 ? "s" : "", where);
    }
    finding.explanation = explanation(where);
    finding.fix = lagging_.empty()
                      ? fmt::format("look where {} stand{}: a stack of each (py-spy dump --pid PID, gdb) shows what keeps it from its next call",
                                    who, one ? "s" : "")
                      : fmt::format("look at the devices and hosts of {}: kernel log (Xid, ECC), nvidia-smi, a stack of the process", who);
    if (waiting != nullptr && !finding.position) {
      finding.position = describe_.position(waiting->program, waiting->operation);
      finding.communicator = describe_.communicator_view(describe_.operation(waiting->program, waiting->operation).comm);
    }
    finding.wait_for.clear();
    add_wait_for(describe_, standstill_, joined_, finding);
    for (const LaggingRank& lag : lagging_) {
      const std::int32_t rank = job_.program(lag.program).rank;
      for (WaitFor& wait : finding.wait_for) {
        if (wait.rank == rank) wait.why = fmt::format("has completed nothing on {} since #{}", describe_.communicator(lag.comm), lag.open);
      }
    }
    if (finding.evidence.empty()) {
      for (const LaggingRank& lag : lagging_) finding.evidence.push_back({job_.source(job_.program(lag.program).source), 0});
    }
    return finding;
  }

  bool misses_messages() const {
    return !joined_.stuck.empty() && std::ranges::all_of(joined_.stuck, [&](std::size_t s) {
      const GateIndex gate = standstill_.stuck[s].gate;
      return gate != kNoGate && owner_of(describe_.match(), gate).comm == kNoComm;
    });
  }

  /// The call at which most ranks wait for the stopped ones; a collective before a message.
  const BlockedOperation* first_waiting() const {
    const BlockedOperation* best = nullptr;
    std::pair<bool, std::size_t> best_weight{};
    for (const BlockedOperation& blocked : standstill_.blocked) {
      if (!std::ranges::binary_search(joined_.stuck, blocked.stuck)) continue;
      const std::pair weight(is_collective(describe_.operation(blocked.program, blocked.operation).kind),
                             standstill_.stuck[blocked.stuck].arrived.size());
      if (best != nullptr && weight <= best_weight) continue;
      best = &blocked;
      best_weight = weight;
    }
    return best;
  }

  std::string explanation(const std::string& where) const {
    std::string text;
    if (!stopped_.empty()) {
      const std::vector<std::int32_t> ranks(stopped_.begin(), stopped_.end());
      text = fmt::format("{} make{} no further call, on any group; {} wait{} for {}, directly or through others, first in {}; up to there the calls "
                         "agree as far as the records go",
                         ranks_text(ranks), ranks.size() == 1 ? "s" : "", ranks_text(joined_.victims),
                         joined_.victims.size() == 1 ? "s" : "", ranks.size() == 1 ? "it" : "them", where);
    }
    constexpr std::size_t kMostTold = 4;
    for (std::size_t i = 0; i < lagging_.size(); ++i) {
      if (i == kMostTold) {
        text += fmt::format("; and {} more ranks likewise", lagging_.size() - i);
        break;
      }
      const LaggingRank& lag = lagging_[i];
      text += fmt::format("{}on rank {} #{} of {} has not completed, on other members all before #{} have", text.empty() ? "" : "; ",
                          job_.program(lag.program).rank, lag.open, describe_.communicator(lag.comm), lag.completed);
    }
    if (!lagging_.empty()) text += ": the device or its watchdog stands, not the program";
    return text;
  }

  const Describer& describe_;
  const Job& job_;
  const ReplayResult& standstill_;
  const std::vector<Cause>& causes_;
  std::vector<Draft>& drafts_;
  std::vector<LaggingRank> lagging_;
  std::set<std::int32_t> stopped_;
  Cause joined_{.kind = CauseKind::kEnded};
};

}  // namespace

std::vector<LaggingRank> find_lagging_ranks(const Job& job) {
  std::vector<LaggingRank> result;
  if (job.library() != Library::kTorch) return result;
  std::vector<std::uint32_t> completed(job.communicators().size(), 0);
  std::vector<bool> open(job.communicators().size());
  for (const Program& program : job.programs()) {
    for (const EarlierCalls& earlier : program.earlier) {
      std::uint32_t& most = completed[to_size(earlier.comm)];
      most = std::max(most, earlier.calls);
    }
    open.assign(open.size(), false);
    for (const Operation& operation : program.placed_operations()) {
      if (operation.comm == kNoComm || !is_collective(operation.kind)) continue;
      if (operation.state != OpState::kCompleted) open[to_size(operation.comm)] = true;
      if (open[to_size(operation.comm)] || !proves_arrival(operation.kind)) continue;
      completed[to_size(operation.comm)] = std::max(completed[to_size(operation.comm)], operation.seq + 1);
    }
  }
  for (std::uint32_t p = 0; p < job.programs().size(); ++p) {
    open.assign(open.size(), false);
    LaggingRank most;
    for (const Operation& operation : job.programs()[p].placed_operations()) {
      if (operation.comm == kNoComm || !is_collective(operation.kind) || !in_flight(operation) || open[to_size(operation.comm)]) continue;
      open[to_size(operation.comm)] = true;
      const std::uint32_t elsewhere = completed[to_size(operation.comm)];
      // A watchdog looks every 100 ms: one call is nothing.
      if (elsewhere < operation.seq + 2) continue;
      if (most.program != kNoProgram && elsewhere - operation.seq <= most.completed - most.open) continue;
      most = {.program = ProgramIndex{p}, .comm = operation.comm, .open = operation.seq, .completed = elsewhere};
    }
    if (most.program != kNoProgram) result.push_back(most);
  }
  return result;
}

void join_stopped_ranks(const Describer& describe, const ReplayResult& standstill, const std::vector<Cause>& causes,
                        std::vector<Draft>& drafts) {
  Joiner(describe, standstill, causes, drafts).run();
}

}  // namespace lockstep
