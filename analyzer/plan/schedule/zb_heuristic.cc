// zero-bubble's heuristic for one chunk a rank (zb.py, manual_order): eight ways to trade bubbles against
// memory, of which the shortest is taken. Every forward holds 2 units of memory, its B and its W release one
// each; a rank may hold 2 forwards a stage.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "plan/schedule/zb_parts.h"

namespace lockstep::plan {
namespace {

enum : std::size_t { kF = 0, kB = 1, kW = 2 };
constexpr std::array<std::int64_t, 3> kMemory = {2, -1, -1};

struct Choices {
  bool bubble_before_first_b = false;
  bool prioritize_b = false;
  bool greedy = false;  // fill a bubble with W even where it would not make the longest bubble longer
};

class Heuristic {
 public:
  Heuristic(const ZeroBubbleQuery& query, Choices choices)
      : stages_(query.stages),
        micro_batches_(query.micro_batches),
        max_memory_(kMemory[kF] * 2 * query.stages),
        choices_(choices),
        ranks_(static_cast<std::size_t>(query.stages)) {
    for (auto& type : end_)
      type.assign(static_cast<std::size_t>(stages_) * static_cast<std::size_t>(micro_batches_), 0);
  }

  /// False: it does not fit into memory.
  bool run() {
    first_micro_batch();
    for (std::int32_t i = 1; i < micro_batches_; ++i) {
      if (!put_forwards() || !put_backwards(i)) return false;
    }
    for (std::int32_t j = 0; j < stages_; ++j) {
      while (count(j, kW) < micro_batches_) put(j, kW);
    }
    return true;
  }

  std::int64_t end(std::size_t type, std::int32_t stage, std::int32_t m) const {
    return end_[type][at(stage, m)];
  }
  std::int64_t longest() const {
    std::int64_t longest = 0;
    for (std::int32_t j = 0; j < stages_; ++j) {
      longest = std::max(longest, end(kW, j, micro_batches_ - 1) - end(kF, j, 0) + kZbCost);
    }
    return longest;
  }

 private:
  struct Rank {
    std::array<std::int32_t, 3> count{};
    std::int64_t memory = 0, time = 0, bubble = 0;
  };
  Rank& rank(std::int32_t j) { return ranks_[static_cast<std::size_t>(j)]; }
  std::int32_t count(std::int32_t j, std::size_t type) { return rank(j).count[type]; }
  std::size_t at(std::int32_t stage, std::int32_t m) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(micro_batches_) +
           static_cast<std::size_t>(m);
  }
  std::int64_t longest_bubble() const { return std::ranges::max(ranks_, {}, &Rank::bubble).bubble; }

  void put(std::int32_t j, std::size_t type) {
    Rank& r = rank(j);
    const std::int32_t m = r.count[type];
    const std::int64_t without_bubble = r.time + kZbCost;
    std::int64_t end = without_bubble;
    if (j > 0 && type == kF) end = std::max(end, this->end(kF, j - 1, m) + kZbMessageCost + kZbCost);
    if (j + 1 < stages_ && type == kB)
      end = std::max(end, this->end(kB, j + 1, m) + kZbMessageCost + kZbCost);
    if (r.count[kF] > 0) r.bubble += end - without_bubble;
    r.time = end;
    end_[type][at(j, m)] = end;
    r.memory += kMemory[type];
    ++r.count[type];
  }

  /// Forwards of micro-batch 0 everywhere, then as many more as fit before the first gradient comes back,
  /// then that.
  void first_micro_batch() {
    for (std::int32_t j = 0; j < stages_; ++j) put(j, kF);
    std::vector<std::int32_t> required(ranks_.size());
    const auto of = [&](std::int32_t j) -> std::int32_t& { return required[static_cast<std::size_t>(j)]; };
    std::int64_t gradient = end(kF, stages_ - 1, 0) + kZbCost;
    for (std::int32_t j = stages_ - 2; j >= 0; --j) {
      std::int64_t memory = rank(j).memory;
      std::int64_t time = rank(j).time;
      while (count(j, kF) + of(j) < micro_batches_ && memory + kMemory[kF] <= max_memory_) {
        const std::int64_t needed = choices_.bubble_before_first_b ? time + kZbCost : time;
        const bool stop = choices_.bubble_before_first_b ? needed > gradient + kZbMessageCost
                                                         : needed >= gradient + kZbMessageCost;
        if (stop) break;
        memory += kMemory[kF];
        time += kZbCost;
        ++of(j);
      }
      gradient = std::max(time, gradient + kZbMessageCost) + kZbCost;
    }
    for (std::int32_t j = 1; j < stages_; ++j) {
      while (of(j) > 0 && of(j) >= of(j - 1) && count(j, kF) + of(j) < micro_batches_) --of(j);
    }
    for (std::int32_t j = 0; j < stages_; ++j) {
      for (std::int32_t n = of(j); n > 0; --n) put(j, kF);
    }
    for (std::int32_t j = stages_ - 1; j >= 0; --j) put(j, kB);
  }

  /// Whether stage j should run another forward now, before the next one asks for more.
  bool wants_forward(std::int32_t j) {
    if (count(j, kF) >= micro_batches_) return false;
    if (j + 1 >= stages_ || count(j, kF) < count(j + 1, kF) + 2 || !choices_.prioritize_b) return true;
    const std::int64_t next_done = rank(j + 1).time + 2 * kZbCost + kZbMessageCost;
    if (rank(j).time >= next_done) return false;
    std::int64_t weights = 0;
    std::int64_t memory = rank(j).memory + kMemory[kF];
    for (std::int32_t w = 0; memory > max_memory_ && count(j, kW) + w < count(j, kB); ++w) {
      weights += kZbCost;
      memory += kMemory[kW];
    }
    if (rank(j).time + kZbCost + weights <= next_done) return true;
    return next_done - rank(j).time > longest_bubble() - rank(j).bubble;
  }

  bool make_room(std::int32_t j, std::size_t type) {
    while (rank(j).memory + kMemory[type] > max_memory_) {
      if (count(j, kW) >= count(j, kB)) return false;
      put(j, kW);
    }
    return true;
  }
  /// W until what j waits for is there at `ready`.
  void fill_until(std::int32_t j, std::int64_t ready) {
    const auto pending = [&] { return count(j, kW) < count(j, kB); };
    while (pending() && rank(j).time + kZbCost <= ready) put(j, kW);
    if (!pending() || rank(j).time >= ready) return;
    const bool fits_longest = ready - rank(j).time <= longest_bubble() - rank(j).bubble;
    if (!fits_longest || choices_.greedy) put(j, kW);
  }

  bool put_forwards() {
    std::vector<bool> wanted(ranks_.size());
    for (std::int32_t j = 0; j < stages_; ++j) wanted[static_cast<std::size_t>(j)] = wants_forward(j);
    for (std::size_t j = wanted.size(); j-- > 1;) wanted[j - 1] = wanted[j - 1] && wanted[j];
    for (std::int32_t j = 0; j < stages_; ++j) {
      if (!wanted[static_cast<std::size_t>(j)]) continue;
      if (!make_room(j, kF)) return false;
      if (j > 0) fill_until(j, end(kF, j - 1, count(j, kF)) + kZbMessageCost);
      put(j, kF);
    }
    return true;
  }

  bool put_backwards(std::int32_t i) {
    for (std::int32_t j = stages_ - 1; j >= 0; --j) {
      if (!make_room(j, kB)) return false;
      if (j + 1 < stages_) fill_until(j, end(kB, j + 1, i) + kZbMessageCost);
      if (j == 0 && count(j, kF) == micro_batches_) {
        while (count(j, kW) < count(j, kB)) put(j, kW);
      }
      put(j, kB);
    }
    return true;
  }

  std::int32_t stages_, micro_batches_;
  std::int64_t max_memory_;
  Choices choices_;
  std::vector<Rank> ranks_;
  std::array<std::vector<std::int64_t>, 3> end_;  // by type, stage and micro-batch
};

}  // namespace

Result<ZbOrder> zb_heuristic_order(const ZeroBubbleQuery& query) {
  std::optional<Heuristic> best;
  for (const bool bubble : {true, false}) {
    for (const bool prioritize : {true, false}) {
      for (const bool greedy : {true, false}) {
        Heuristic attempt(query, {bubble, prioritize, greedy});
        if (!attempt.run()) return Error{ErrorCode::kUnsupported, "ValueError: Cannot fit memory"};
        if (!best || attempt.longest() < best->longest()) best.emplace(std::move(attempt));
      }
    }
  }
  ZbOrder order;
  constexpr std::array<ZbType, 3> kTypes = {ZbType::kF, ZbType::kB, ZbType::kW};
  for (std::int32_t j = 0; j < query.stages; ++j) {
    auto& row = order.emplace_back();
    for (std::size_t type = 0; type < kTypes.size(); ++type) {
      for (std::int32_t m = 0; m < query.micro_batches; ++m) {
        row.push_back(zb_compute(kTypes[type], query.stages, j, 0, m, false));
        row.back().end = best->end(type, j, m);  // for sorting; times are computed again with the messages
      }
    }
    std::ranges::stable_sort(row, {}, &ZbNode::end);
  }
  return order;
}

}  // namespace lockstep::plan
