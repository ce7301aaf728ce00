// zero-bubble's V schedules with controllable memory (zbv_greedy.py): a repeating pattern of four turns for
// each micro-batch, moved forward greedily where memory allows, with W put into the gaps.
#include <algorithm>
#include <array>
#include <limits>

#include "plan/schedule/zb_parts.h"

namespace lockstep::plan {
namespace {

/// Times of one stage's turns: by type (F0 F1 B1 B0, then W of one kind or two), then micro-batch.
using StageTimes = std::vector<std::vector<std::int64_t>>;
using Times = std::vector<StageTimes>;
constexpr std::size_t kTurns = 4;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// The four turns of micro-batch 0; those of the next come six units later.
std::array<std::int64_t, kTurns> pattern(std::int64_t p, std::int64_t i, bool half) {
  if (half) {
    const std::int64_t gap = p % 2 == 0 ? 3 : 0;
    return {i * 2, p * 3 - i - 2, p * 3 + gap + i * 2 - 1, p * 6 + gap - i - 2};
  }
  const std::int64_t gap = p % 3 == 0 ? 2 : 0;
  return {i, p * 2 - i - 1, p * 2 + gap + i, p * 4 + gap - i - 1};
}

std::int64_t last_time(const StageTimes& stage) {
  std::int64_t last = 0;
  for (const auto& type : stage) last = std::max(last, type.back());
  return last;
}

/// Goes through turns in order of (time, stage, type).
class Merge {
 public:
  struct Turn {
    std::int64_t time = kNever;
    std::size_t stage = 0, type = 0, micro_batch = 0;
  };
  Merge(const Times& times, std::size_t types)
      : times_(times), next_(times.size(), std::vector<std::size_t>(types)) {}
  Turn take() {
    Turn best;
    for (std::size_t s = 0; s < times_.size(); ++s) {
      for (std::size_t t = 0; t < next_[s].size(); ++t) {
        const std::size_t m = next_[s][t];
        if (m < times_[s][t].size() && times_[s][t][m] < best.time) best = {times_[s][t][m], s, t, m};
      }
    }
    if (best.time != kNever) ++next_[best.stage][best.type];
    return best;
  }

 private:
  const Times& times_;  // entries that were taken may change
  std::vector<std::vector<std::size_t>> next_;
};

/// Adds the turns of W, one kind for each chunk or one for both, into gaps as they come.
void put_weights(StageTimes& stage, bool split) {
  const std::int64_t bound = last_time(stage);
  stage.resize(kTurns + (split ? 2 : 1));
  std::array<std::size_t, kTurns> next{};
  std::array<std::int64_t, 2> pending{};
  std::int64_t time = 0;
  for (; time <= bound; ++time) {
    bool taken = false;
    for (std::size_t t = 0; t < kTurns && !taken; ++t) {
      if (next[t] == stage[t].size() || stage[t][next[t]] != time) continue;
      ++next[t];
      if (t >= 2) ++pending[split ? t - 2 : 0];
      taken = true;
    }
    for (std::size_t w = 0; w < 2 && !taken; ++w) {
      if (pending[w] == 0) continue;
      stage[kTurns + w].push_back(time);
      --pending[w];
      taken = true;
    }
  }
  --time;
  for (std::size_t w = 0; w < 2; ++w) {
    for (; pending[w] > 0; --pending[w]) stage[kTurns + w].push_back(++time);
  }
}

/// Most forwards held at once. Without turns of W each gap releases one.
std::int64_t peak_memory(const StageTimes& stage) {
  constexpr std::array<std::int64_t, 6> kHeld = {1, 1, 0, 0, -1, -1};
  const bool with_weights = stage.size() > kTurns;
  const std::int64_t bound = last_time(stage);
  std::vector<std::size_t> next(stage.size());
  std::int64_t held = 0, peak = 0, pending = 0;
  for (std::int64_t time = 0; time <= bound; ++time) {
    bool taken = false;
    for (std::size_t t = 0; t < stage.size() && !taken; ++t) {
      if (next[t] == stage[t].size() || stage[t][next[t]] != time) continue;
      ++next[t];
      held += kHeld[t];
      if (t == 2 || t == 3) ++pending;
      taken = true;
    }
    if (!taken && !with_weights && pending > 0) {
      --held;
      --pending;
    }
    peak = std::max(peak, held);
  }
  return peak;
}

struct Executed {
  Times starts{};
  std::vector<std::vector<std::pair<std::size_t, std::int32_t>>> order{};  ///< by stage: type and micro-batch
};

/// Start times when every turn is run as soon as what it needs is there, in the order of `times`.
Executed run_early(const Times& times, std::int64_t cost, std::int64_t message_cost) {
  const std::size_t types = times[0].size();
  Executed result{.starts = times, .order = {}};
  result.order.resize(times.size());
  std::vector<std::int64_t> busy_until(times.size());
  const auto end = [&](std::size_t s, std::size_t t, std::size_t m) { return result.starts[s][t][m] + cost; };
  Merge merge(times, types);
  for (Merge::Turn turn = merge.take(); turn.time != kNever; turn = merge.take()) {
    const auto& [time, s, t, m] = turn;
    std::int64_t ready = busy_until[s];
    if ((t == 0 || t == 2) && s > 0) ready = std::max(ready, end(s - 1, t, m) + message_cost);
    if ((t == 1 || t == 3) && s + 1 < times.size()) ready = std::max(ready, end(s + 1, t, m) + message_cost);
    if (t > 0 && t < kTurns) ready = std::max(ready, end(s, t - 1, m));
    if (m > 0) ready = std::max(ready, end(s, t, m - 1));
    result.starts[s][t][m] = ready;
    busy_until[s] = ready + cost;
    result.order[s].emplace_back(t, static_cast<std::int32_t>(m));
  }
  return result;
}

/// Moves turns to earlier gaps, memory permitting, then runs early. False: an assertion of the scheduler does
/// not hold.
bool reorder(Times& times, bool with_weights) {
  if (with_weights) {
    for (StageTimes& stage : times) put_weights(stage, false);
  }
  std::int64_t allowed = 0;
  for (const StageTimes& stage : times) allowed = std::max(allowed, peak_memory(stage));
  std::vector<std::vector<bool>> occupied;
  for (const StageTimes& stage : times)
    occupied.emplace_back(static_cast<std::size_t>(stage.back().back() + 1));

  const std::size_t last_micro_batch = times[0][0].size() - 1;
  Merge merge(times, with_weights ? kTurns + 1 : kTurns);
  int phase = 0;
  for (Merge::Turn turn = merge.take(); turn.time != kNever; turn = merge.take()) {
    const auto& [time, s, t, m] = turn;
    StageTimes& stage = times[s];
    const auto occupy = [&] {
      const auto at = static_cast<std::size_t>(stage[t][m]);
      if (at >= occupied[s].size()) return false;
      occupied[s][at] = true;
      return true;
    };
    if (t == 3 && s == 0 && phase == 0) ++phase;
    if (phase == 1) {
      if (t == 0 && m == last_micro_batch) ++phase;
      if (!occupy()) return false;
      continue;
    }
    if (phase == 0 && !with_weights) {
      if (!occupy()) return false;
      continue;
    }
    std::int64_t ready = -1;
    if ((t == 0 || t == 2) && s > 0) ready = std::max(ready, times[s - 1][t][m]);
    if ((t == 1 || t == 3) && s + 1 < times.size()) ready = std::max(ready, times[s + 1][t][m]);
    if (t > 0 && t < kTurns) ready = std::max(ready, stage[t - 1][m]);
    if (t == kTurns) {
      std::vector<std::int64_t> backwards = stage[2];
      backwards.insert(backwards.end(), stage[3].begin(), stage[3].end());
      std::ranges::nth_element(backwards, backwards.begin() + static_cast<std::ptrdiff_t>(m));
      ready = std::max(ready, backwards[m]);
    }
    if (m > 0) ready = std::max(ready, stage[t][m - 1]);
    if (++ready > time) return false;
    bool moved = false;
    for (std::int64_t earlier = ready; earlier < time && !moved; ++earlier) {
      if (static_cast<std::size_t>(earlier) >= occupied[s].size()) return false;
      if (occupied[s][static_cast<std::size_t>(earlier)]) continue;
      stage[t][m] = earlier;
      moved = peak_memory(stage) <= allowed;
    }
    if (!moved) stage[t][m] = time;
    if (!occupy()) return false;
  }
  if (!with_weights) {
    for (StageTimes& stage : times) put_weights(stage, false);
  }
  times = run_early(times, 1, 0).starts;
  return true;
}

void drop_weights(Times& times) {
  for (StageTimes& stage : times) stage.resize(kTurns);
}

}  // namespace

Result<ZbOrder> zbv_greedy_order(const ZeroBubbleQuery& query, bool half) {
  Times times;
  for (std::int32_t i = 0; i < query.stages; ++i) {
    StageTimes& stage = times.emplace_back();
    for (const std::int64_t first : pattern(query.stages, i, half)) {
      auto& turns = stage.emplace_back();
      for (std::int64_t m = 0; m < query.micro_batches; ++m) turns.push_back(first + 6 * m);
    }
  }
  if (!reorder(times, true)) return zb_assertion("reorder");
  drop_weights(times);
  if (!reorder(times, false)) return zb_assertion("reorder");
  drop_weights(times);
  for (StageTimes& stage : times) put_weights(stage, true);
  const Executed executed = run_early(times, kZbCost, kZbMessageCost);

  ZbOrder order;
  constexpr std::array<ZbType, 3> kTypes = {ZbType::kF, ZbType::kB, ZbType::kW};
  for (std::int32_t stage = 0; stage < query.stages; ++stage) {
    auto& row = order.emplace_back();
    for (const auto& [type, micro_batch] : executed.order[static_cast<std::size_t>(stage)]) {
      const auto turn = static_cast<std::int32_t>(type % 2);
      const std::int32_t chunk = type / 2 == 0 ? turn : 1 - turn;
      row.push_back(zb_compute(kTypes[type / 2], query.stages, stage, chunk, micro_batch, true));
    }
  }
  return order;
}

}  // namespace lockstep::plan
