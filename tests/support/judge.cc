// The fault is seen through what it did to the sequences of its rank, before and after: one per communicator,
// and one per pair of ranks, communicator and tag for messages. Nobody can see more than that.
#include "support/judge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "support/oracle.h"

namespace lockstep::testing {
namespace {

enum class Side : std::uint8_t { kCollective, kSend, kReceive };
/// (communicator, what the rank does there, from, to, tag); collectives use the first two.
using Channel = std::tuple<int, Side, std::int32_t, std::int32_t, std::uint32_t>;
using Sequences = std::map<Channel, std::vector<std::string>>;
using Ranks = std::set<std::int32_t>;

/// What the other members can see of a call: what must agree.
std::string visible(const JobSketch& job, const SketchOp& op) {
  std::string text =
      is_point_to_point(op.kind) ? (is_send(op.kind) ? "send" : "recv") : std::string(op_name(op.kind));
  if (has_root(op.kind)) text += " root=" + std::to_string(op.peer);
  if (!has_free_count(op.kind)) text += " " + op.count;
  if (has_reduction(op.kind)) text += " " + op.redop;
  if (job.library == Library::kMpi && is_collective(op.kind) && !op.handle.empty()) text += " nonblocking";
  return text + " " + op.datatype + " " + op.payload;
}

Channel channel_of(const SketchOp& op, std::int32_t rank) {
  if (is_collective(op.kind)) return {op.comm, Side::kCollective, 0, 0, 0};
  return is_send(op.kind) ? Channel{op.comm, Side::kSend, rank, op.peer, op.tag}
                          : Channel{op.comm, Side::kReceive, op.peer, rank, op.tag};
}

bool is_matched(const SketchOp& op) { return is_collective(op.kind) || is_point_to_point(op.kind); }

Sequences sequences_of(const JobSketch& job, std::int32_t rank) {
  Sequences sequences;
  for (const SketchOp& op : job.programs[static_cast<std::size_t>(rank)]) {
    if (is_matched(op)) sequences[channel_of(op, rank)].push_back(visible(job, op));
  }
  return sequences;
}

/// Positions on one channel at which the change may be said to be.
struct Place {
  Channel channel{};
  std::size_t low = 0;
  std::size_t high = 0;
};

/// One call more or less in a run of equal ones can be any of the run: from where the ends differ when
/// counted from behind to where they differ when counted from the front. A changed call is one position, a
/// swap those between.
Place changed_part(const Channel& channel, const std::vector<std::string>& before,
                   const std::vector<std::string>& after) {
  const auto front = static_cast<std::size_t>(std::ranges::mismatch(before, after).in1 - before.begin());
  std::size_t back = 0;
  while (back < before.size() && back < after.size() &&
         before[before.size() - 1 - back] == after[after.size() - 1 - back]) {
    ++back;
  }
  const std::size_t shorter = std::min(before.size(), after.size());
  const std::size_t other =
      before.size() == after.size() ? before.size() - 1 - back : shorter - std::min(shorter, back);
  return {channel, std::min(front, other), std::max(front, other)};
}

class Judge {
 public:
  Judge(const JobSketch& correct, const JobSketch& faulted, const Fault& fault)
      : correct_(correct),
        faulted_(faulted),
        fault_(fault),
        job_(build_job(faulted)),
        meetings_(find_meetings(job_)) {
    compare_sequences();
    if (places_.empty()) find_moved_calls();
  }

  bool ranks_right(const Finding& finding) const {
    const Ranks found(finding.divergent_ranks.begin(), finding.divergent_ranks.end());
    return std::ranges::find(right_ranks_, found) != right_ranks_.end() || explains_order(found);
  }

  bool position_right(const Finding& finding) const {
    if (!finding.position || !finding.communicator) return false;
    const std::optional<OpKind> kind = op_kind_from_name(finding.position->op);
    const bool message = kind && (is_point_to_point(*kind) || *kind == OpKind::kProbe);
    return std::ranges::any_of(places_, [&](const Place& place) {
      const auto& [comm, side, from, to, tag] = place.channel;
      return correct_.communicators[static_cast<std::size_t>(comm)].name == finding.communicator->name &&
             (side != Side::kCollective) == message && finding.position->seq >= place.low &&
             finding.position->seq <= place.high;
    });
  }

  std::string expectation() const {
    std::string text = "ranks";
    for (const Ranks& ranks : std::set<Ranks>(right_ranks_.begin(), right_ranks_.end()))
      text += " " + to_text(ranks);
    if (only_order_) text += " (or others in it)";
    text += " at";
    for (const Place& place : places_) {
      const auto& [comm, side, from, to, tag] = place.channel;
      text += " " + correct_.communicators[static_cast<std::size_t>(comm)].name;
      if (side != Side::kCollective) text += " " + std::to_string(from) + "->" + std::to_string(to);
      text += "#" + std::to_string(place.low) + ".." + std::to_string(place.high);
    }
    return text;
  }

  static std::string to_text(const Ranks& ranks) {
    std::string text = "{";
    for (const std::int32_t rank : ranks) text += (text.size() > 1 ? "," : "") + std::to_string(rank);
    return text + "}";
  }

 private:
  const std::vector<std::int32_t>& members(int comm) const {
    return correct_.communicators[static_cast<std::size_t>(comm)].members;
  }

  void compare_sequences() {
    Sequences before = sequences_of(correct_, fault_.rank);
    Sequences after = sequences_of(faulted_, fault_.rank);
    std::set<Channel> channels;
    for (const auto& [channel, calls] : before) channels.insert(channel);
    for (const auto& [channel, calls] : after) channels.insert(channel);
    for (const Channel& channel : channels) {
      if (before[channel] == after[channel]) continue;
      places_.push_back(changed_part(channel, before[channel], after[channel]));
      if (std::get<Side>(channel) != Side::kCollective) reach_visible(places_.back());
      add_right_ranks(channel);
    }
  }

  /// Messages agree in more than equal ones: a receive may be longer in MPI, a payload left out. What is seen
  /// of a missing message is the first pair further on that does not agree.
  void reach_visible(Place& place) const {
    const auto& [comm, side, from, to, tag] = place.channel;
    const auto found = meetings_.messages.find({static_cast<std::uint32_t>(comm), from, to, tag});
    if (found == meetings_.messages.end()) return;
    const auto& [sends, receives] = found->second;
    std::size_t seq = 0;
    while (seq < sends.size() && seq < receives.size() &&
           message_disagreement(job_, at(sends[seq]), at(receives[seq])).empty()) {
      ++seq;
    }
    place.high = std::max(place.high, seq);
  }
  const Operation& at(CallRef ref) const { return job_.programs()[ref.program].operations[ref.index]; }

  /// Three members or more: the majority shows who is wrong. Two, or the ends of a message: both are named,
  /// unless the rank is known from elsewhere, because it is missed or surplus in several places.
  void add_right_ranks(const Channel& channel) {
    const auto& [comm, side, from, to, tag] = channel;
    if (side != Side::kCollective) {
      touched_.insert({from, to});
      right_ranks_.push_back({from, to});
      right_ranks_.push_back({fault_.rank});
      right_ranks_.push_back(touched_);
      return;
    }
    const Ranks all(members(comm).begin(), members(comm).end());
    if (all.size() == 2) right_ranks_.push_back(all);
    if (all.size() != 2 || places_.size() > 1) right_ranks_.push_back({fault_.rank});
  }

  /// No sequence changed: two calls of different ones were exchanged. Any call between them may be named.
  void find_moved_calls() {
    only_order_ = true;
    const auto& before = correct_.programs[static_cast<std::size_t>(fault_.rank)];
    const auto& after = faulted_.programs[static_cast<std::size_t>(fault_.rank)];
    const auto first = static_cast<std::size_t>(std::ranges::mismatch(before, after).in1 - before.begin());
    std::size_t end = before.size();
    while (end > first && before[end - 1] == after[end - 1]) --end;
    std::map<Channel, std::size_t> position;
    for (std::size_t i = 0; i < end; ++i) {
      if (!is_matched(before[i])) continue;
      const Channel channel = channel_of(before[i], fault_.rank);
      const std::size_t seq = position[channel]++;
      if (i < first) continue;
      places_.push_back({channel, seq, seq});
      const auto& all = members(std::get<0>(channel));
      touched_.insert(all.begin(), all.end());
    }
    right_ranks_.push_back({fault_.rank});
  }

  /// An order has no majority where fewer than three ranks share it; then it is enough to name the rank among
  /// those that the exchanged calls concern.
  bool explains_order(const Ranks& found) const {
    return only_order_ && found.contains(fault_.rank) && std::ranges::includes(touched_, found);
  }

  const JobSketch& correct_;
  const JobSketch& faulted_;
  const Fault& fault_;
  Job job_;  // the faulted one
  Meetings meetings_;
  std::vector<Place> places_;
  std::vector<Ranks> right_ranks_;
  Ranks touched_;
  bool only_order_ = false;
};

}  // namespace

Judgement judge(const JobSketch& correct, const JobSketch& faulted, const Fault& fault,
                const Report& report) {
  const Judge judge(correct, faulted, fault);
  Judgement judgement{.flagged = report.verdict != Verdict::kConsistent, .expected = judge.expectation()};
  if (report.findings.empty()) return judgement;
  const Finding& first = report.findings.front();
  judgement.ranks_right = judge.ranks_right(first);
  judgement.position_right = judge.position_right(first);
  judgement.blames_others =
      first.severity <= Severity::kContractViolation && !first.divergent_ranks.empty() &&
      std::ranges::find(first.divergent_ranks, fault.rank) == first.divergent_ranks.end();
  judgement.found = std::string(verdict_name(first.verdict)) + "/" + first.finding_class + " ranks " +
                    Judge::to_text({first.divergent_ranks.begin(), first.divergent_ranks.end()});
  if (first.communicator) judgement.found += " on " + first.communicator->name;
  if (first.position)
    judgement.found += " #" + std::to_string(first.position->seq) + " " + first.position->op;
  judgement.found += ": " + first.title;
  return judgement;
}

}  // namespace lockstep::testing
