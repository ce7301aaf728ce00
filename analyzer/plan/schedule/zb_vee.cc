// zero-bubble's heuristic for a V of two chunks (zbv.py, try_v_schedule). A rank may hold as many forwards as
// twice the stages.
#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "plan/schedule/zb_parts.h"

namespace lockstep::plan {
namespace {

constexpr std::array<std::int64_t, 3> kMemory = {2, -1, -1};  // F, B, W

struct Work {
  std::int32_t category = 0, chunk = 0, micro_batch = 0;
};

class Vee {
 public:
  Vee(const ZeroBubbleQuery& query, bool fill_f, bool fill_b, std::vector<std::int64_t> approved)
      : stages_(query.stages),
        micro_batches_(query.micro_batches),
        fill_f_(fill_f),
        fill_b_(fill_b),
        approved_(std::move(approved)),
        max_memory_(kMemory[0] * query.stages * 2),
        end_(static_cast<std::size_t>(6 * query.stages) * static_cast<std::size_t>(query.micro_batches), -1),
        ranks_(static_cast<std::size_t>(query.stages)) {}

  /// False: an assertion of the scheduler does not hold.
  bool run() {
    warm_up();
    for (std::int32_t i = 0; ok_ && i < 2 * micro_batches_; ++i) {
      put_backwards();
      put_forwards();
    }
    for (std::int32_t i = 0; i < stages_; ++i) {
      while (ok_ && !rank(i).pending.empty()) put_weight(i);
    }
    return ok_;
  }

  std::vector<std::int64_t> bubbles() const {
    std::vector<std::int64_t> result;
    for (const Rank& r : ranks_) result.push_back(r.bubble);
    return result;
  }
  std::int64_t longest_bubble() const { return std::ranges::max(ranks_, {}, &Rank::bubble).bubble; }
  const std::vector<Work>& work(std::int32_t stage) const {
    return ranks_[static_cast<std::size_t>(stage)].work;
  }

 private:
  struct Rank {
    std::array<std::int32_t, 6> count{};  // by 2 * category + chunk
    std::int64_t time = 0, memory = 0, bubble = 0;
    std::deque<std::int32_t> pending{};  // chunks whose W is due
    std::vector<Work> work{};
  };
  Rank& rank(std::int32_t i) { return ranks_[static_cast<std::size_t>(i)]; }
  std::size_t id(std::int32_t category, std::int32_t chunk, std::int32_t stage, std::int32_t m) const {
    return static_cast<std::size_t>(((category * 2 + chunk) * stages_ + stage)) *
               static_cast<std::size_t>(micro_batches_) +
           static_cast<std::size_t>(m);
  }
  bool is_done(std::int32_t category, std::int32_t chunk, std::int32_t stage, std::int32_t m) {
    if (m >= micro_batches_ || m < 0) {
      ok_ = false;
      return false;
    }
    return end_[id(category, chunk, stage, m)] >= 0;
  }
  void require(bool holds) { ok_ = ok_ && holds; }

  std::int64_t allowed_bubble(std::int32_t stage) const {
    std::int64_t longest = std::max<std::int64_t>(0, longest_bubble());
    if (!approved_.empty())
      longest = std::max(longest, std::ranges::max(approved_) - approved_[static_cast<std::size_t>(stage)]);
    return longest;
  }

  void put(std::int32_t category, std::int32_t chunk, std::int32_t stage) {
    Rank& r = rank(stage);
    const std::int32_t m = r.count[static_cast<std::size_t>(category * 2 + chunk)];
    require(m < micro_batches_ && r.memory + kMemory[static_cast<std::size_t>(category)] <= max_memory_);
    if (!ok_) return;
    const std::int64_t without_bubble = r.time + kZbCost;
    std::int64_t end = without_bubble;
    if (category == 2) {
      require(is_done(1, chunk, stage, m));
    } else if (category > 0 || chunk > 0) {
      const std::int32_t before = category * 2 + chunk - 1;
      require(is_done(before / 2, before % 2, stage, m));
    }
    const std::int32_t feeder = chunk == 1 ? stage + 1 : stage - 1;
    if (category < 2 && feeder >= 0 && feeder < stages_) {
      require(is_done(category, chunk, feeder, m));
      end = std::max(end, end_[id(category, chunk, feeder, m)] + kZbMessageCost + kZbCost);
    }
    if (r.count[0] > 0) r.bubble += end - without_bubble;
    end_[id(category, chunk, stage, m)] = end;
    r.time = end;
    r.memory += kMemory[static_cast<std::size_t>(category)];
    r.work.push_back({category, chunk, m});
    if (category == 1) r.pending.push_back(chunk);
    ++r.count[static_cast<std::size_t>(category * 2 + chunk)];
  }
  void put_weight(std::int32_t stage) {
    require(!rank(stage).pending.empty());
    if (!ok_) return;
    const std::int32_t chunk = rank(stage).pending.front();
    rank(stage).pending.pop_front();
    put(2, chunk, stage);
  }

  void warm_up() {
    for (std::int32_t i = 0; i < stages_; ++i) put(0, 0, i);
    for (std::int32_t i = stages_ - 1; i >= 0; --i) {
      if (i + 1 < stages_) {
        const std::int64_t ready = end_[id(0, 1, i + 1, 0)] + kZbMessageCost;
        while (ok_ && rank(i).memory + kMemory[0] * (2 + i * 2) <= max_memory_ &&
               rank(i).time + kZbCost <= ready && rank(i).count[0] < micro_batches_) {
          for (std::int32_t j = 0; j <= i; ++j) put(0, 0, j);
        }
      }
      put(0, 1, i);
    }
    std::int32_t chunk = 0;
    for (std::int32_t i = 1; i < stages_; ++i) {
      const auto behind = [&] {
        const auto& mine = rank(i).count;
        const auto& before = rank(i - 1).count;
        return mine[0] + mine[1] < before[0] + before[1] ||
               (mine[1] <= before[1] && before[1] < micro_batches_);
      };
      while (ok_ && behind()) {
        bool moved = false;
        for (std::int32_t j = stages_ - 1; j >= i; --j) {
          if (rank(j).count[static_cast<std::size_t>(chunk)] >= micro_batches_) continue;
          put(0, chunk, j);
          moved = true;
        }
        // Upstream would not come back from here.
        require(moved || rank(i).count[static_cast<std::size_t>(1 - chunk)] < micro_batches_);
        chunk = 1 - chunk;
      }
    }
  }

  void put_backwards() {
    for (std::int32_t i = 0; ok_ && i < stages_; ++i) {
      while (ok_ && rank(i).memory + kMemory[1] > max_memory_) put_weight(i);
    }
    std::vector<std::int32_t> outer, inner;  // stages whose next B is of chunk 0 and of chunk 1
    for (std::int32_t i = 0; ok_ && i < stages_; ++i) {
      const auto& count = rank(i).count;
      const bool of_chunk_1 = count[3] < count[2] && (i + 1 == stages_ || is_done(1, 1, i + 1, count[3]) ||
                                                      count[2] >= micro_batches_);
      (of_chunk_1 ? inner : outer).push_back(i);
    }
    for (auto i = inner.rbegin(); i != inner.rend(); ++i) put_backward(*i, 1);
    for (const std::int32_t i : outer) put_backward(i, 0);
  }
  // The counts of B are by direction: entry 2 is the B that starts at the end of the V.
  void put_backward(std::int32_t i, std::int32_t chunk) {
    if (!ok_) return;
    std::optional<std::size_t> feeder;
    const std::int32_t m = rank(i).count[static_cast<std::size_t>(2 + chunk)];
    const std::int32_t from = chunk == 1 ? i + 1 : i - 1;
    if (from >= 0 && from < stages_) {
      require(m < micro_batches_);
      if (!ok_) return;
      feeder = id(1, chunk, from, m);
    }
    fill(i, feeder, chunk == 1 || fill_b_);
    put(1, chunk, i);
  }

  void put_forwards() {
    for (std::int32_t i = 0; ok_ && i < stages_; ++i) {
      const auto& count = rank(i).count;
      if (count[1] >= micro_batches_) continue;
      std::optional<std::int32_t> chunk;
      if (count[1] >= count[0]) {
        chunk = 0;
      } else if (i + 1 == stages_ || is_done(0, 1, i + 1, count[1])) {
        chunk = 1;
      } else if (count[0] < micro_batches_ && (i == 0 || is_done(0, 0, i - 1, count[0]))) {
        chunk = 0;
      }
      if (!chunk) continue;
      while (ok_ && rank(i).memory + kMemory[0] > max_memory_) put_weight(i);
      std::optional<std::size_t> feeder;
      const std::int32_t from = *chunk == 1 ? i + 1 : i - 1;
      const std::int32_t m = count[static_cast<std::size_t>(*chunk)];
      require(m < micro_batches_);
      if (!ok_) return;
      if (from >= 0 && from < stages_) feeder = id(0, *chunk, from, m);
      fill(i, feeder, fill_f_);
      put(0, *chunk, i);
    }
  }

  /// W into the time until the feeder is done, and one more where the bubble would become too long.
  void fill(std::int32_t i, std::optional<std::size_t> feeder, bool one_more) {
    Rank& r = rank(i);
    while (ok_ && !r.pending.empty() && feeder && end_[*feeder] + kZbMessageCost >= r.time + kZbCost)
      put_weight(i);
    // Upstream looks at the last entry of its table where there is no feeder (index -1).
    const std::int64_t ready = end_[feeder.value_or(end_.size() - 1)] + kZbMessageCost;
    if (ok_ && !r.pending.empty() && ready - r.time > allowed_bubble(i) - r.bubble && one_more) put_weight(i);
  }

  std::int32_t stages_, micro_batches_;
  bool fill_f_, fill_b_;
  std::vector<std::int64_t> approved_;  // bubbles of the attempt before, by stage
  std::int64_t max_memory_;
  std::vector<std::int64_t> end_;
  std::vector<Rank> ranks_;
  bool ok_ = true;
};

/// Runs it again with the bubbles that it found allowed everywhere, as long as that helps.
std::optional<Vee> best_attempt(const ZeroBubbleQuery& query, bool fill_f, bool fill_b) {
  std::optional<Vee> best;
  std::vector<std::int64_t> approved;
  while (true) {
    Vee attempt(query, fill_f, fill_b, approved);
    if (!attempt.run()) return std::nullopt;
    const std::int64_t bubble = attempt.longest_bubble();
    if (best && bubble >= best->longest_bubble()) return best;
    approved = attempt.bubbles();
    best.emplace(std::move(attempt));
  }
}

}  // namespace

Result<ZbOrder> zbv_order(const ZeroBubbleQuery& query) {
  std::optional<Vee> best;
  for (const bool fill_b : {true, false}) {
    for (const bool fill_f : {true, false}) {
      std::optional<Vee> attempt = best_attempt(query, fill_f, fill_b);
      if (!attempt) return zb_assertion("no V schedule of these numbers");
      if (!best || attempt->longest_bubble() < best->longest_bubble()) best = std::move(attempt);
    }
  }
  ZbOrder order;
  constexpr std::array<ZbType, 3> kTypes = {ZbType::kF, ZbType::kB, ZbType::kW};
  for (std::int32_t stage = 0; stage < query.stages; ++stage) {
    auto& row = order.emplace_back();
    for (const Work& work : best->work(stage)) {
      const std::int32_t chunk = work.category == 0 ? work.chunk : 1 - work.chunk;
      row.push_back(zb_compute(kTypes[static_cast<std::size_t>(work.category)], query.stages, stage, chunk,
                               work.micro_batch, true));
    }
  }
  return order;
}

}  // namespace lockstep::plan
