// See the header.
#include "diagnose/live.h"

#include <algorithm>

namespace lockstep {
namespace {

bool is_poll(OpKind kind) { return kind == OpKind::kTest || kind == OpKind::kIprobe; }

}  // namespace

bool is_live(const Job& job) {
  return std::ranges::any_of(job.programs(), [](const Program& program) { return program.end.kind == EndKind::kRunning; });
}

Look::Look(const Job& job) {
  for (const Program& program : job.programs()) {
    RankState state{.rank = program.rank, .head_missing = program.head_missing, .end = program.end.kind};
    for (const EarlierCalls& earlier : program.earlier) state.collectives += earlier.calls;
    for (const Operation& operation : program.operations) {
      if (is_poll(operation.kind)) continue;
      ++(is_collective(operation.kind) ? state.collectives : state.others);
      if (operation.state != OpState::kEntered) ++state.returned;
    }
    state.last_event = program.last_event.value_or(0);
    ranks_.push_back(state);
  }
}

Observation Look::compare(const Look& later, const Job& job, double now) const {
  Observation seen{.state = ProgressState::kStalled};
  for (const RankState& after : later.ranks_) {
    const auto before = std::ranges::lower_bound(ranks_, after.rank, {}, &RankState::rank);
    const bool same = before != ranks_.end() && before->rank == after.rank;
    // A ring that wraps may hold as many messages as before, and other ones.
    const bool moved = !same || before->collectives != after.collectives || before->end != after.end ||
                       (after.head_missing ? before->last_event != after.last_event
                                           : before->others != after.others || before->returned != after.returned);
    if (moved) seen.moved.push_back(after.rank);
  }
  if (!seen.moved.empty()) seen.state = ProgressState::kAdvancing;
  double last = 0;
  for (const Program& program : job.programs()) last = std::max(last, program.last_event.value_or(0));
  if (seen.state == ProgressState::kStalled && last > 0) seen.stalled_for_s = std::max(0.0, now - last);
  return seen;
}

}  // namespace lockstep
