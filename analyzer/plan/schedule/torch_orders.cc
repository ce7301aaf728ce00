#include "plan/schedule/torch_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_set>

#include "plan/schedule/torch_lower.h"
#include "plan/versions.h"

namespace lockstep::plan {
namespace {

using enum TorchAct;

void bubbles(TorchRow& row, std::int32_t count) {
  if (count > 0) row.insert(row.end(), static_cast<std::size_t>(count), TorchAction());
}

TorchRow gpipe(const TorchQuery& query, std::int32_t rank) {
  TorchRow row;
  for (std::int32_t m = 0; m < query.micro_batches; ++m) row.push_back(TorchLeaf{kForward, rank, m});
  for (std::int32_t m = 0; m < query.micro_batches; ++m) row.push_back(TorchLeaf{kBackward, rank, m});
  return add_reduce_grad(row, query.micro_batches, torch_names_waits(query.version) ? TorchWaits::kNamed : TorchWaits::kAtTheEnd);
}

/// The counter of forwards is raised before its use, and the warm-up leaves it one behind only where there is
/// a warm-up: on the last stage micro-batch 0 is never forwarded. Upstream's own validation rejects it.
TorchRow displayed_1f1b(const TorchQuery& query, std::int32_t rank) {
  TorchRow row;
  const std::int32_t warmup = query.ranks - 1 - rank;
  for (std::int32_t m = 0; m < warmup; ++m) row.push_back(TorchLeaf{kForward, rank, m});
  std::int32_t forward = std::max(0, warmup - 1);
  std::int32_t backward = 0;
  for (std::int32_t left = query.micro_batches - warmup; left > 0; --left) {
    row.push_back(TorchLeaf{kForward, rank, ++forward});
    row.push_back(TorchLeaf{kBackward, rank, backward++});
  }
  while (backward < query.micro_batches) row.push_back(TorchLeaf{kBackward, rank, backward++});
  return add_reduce_grad(row, query.micro_batches, torch_names_waits(query.version) ? TorchWaits::kNamed : TorchWaits::kAtTheEnd);
}

TorchRow looped_bfs(const TorchQuery& query, std::int32_t rank) {
  TorchRow row;
  bubbles(row, rank);
  for (std::int32_t s = rank; s < query.stages(); s += query.ranks) {
    for (std::int32_t m = 0; m < query.micro_batches; ++m) row.push_back(TorchLeaf{kForward, s, m});
  }
  bubbles(row, 2 * (query.ranks - 1 - rank));
  for (std::int32_t s = query.stages() - query.ranks + rank; s >= 0; s -= query.ranks) {
    for (std::int32_t m = query.micro_batches - 1; m >= 0; --m) row.push_back(TorchLeaf{kBackward, s, m});
  }
  return row;
}

std::int32_t rounds_of(const TorchQuery& query) { return std::max(1, query.micro_batches / query.ranks); }

/// Interleaved 1F1B, and its zero-bubble form, which splits the backward and puts the first `rank` weight
/// gradients off.
TorchRow interleaved(const TorchQuery& query, std::int32_t rank, bool zero_bubble) {
  const std::int32_t local = query.stages_per_rank;
  const std::int32_t per_round = query.micro_batches / rounds_of(query);
  const std::int32_t total = local * query.micro_batches;
  const std::int32_t hop = zero_bubble ? 1 : 2;
  const std::int32_t warmup = std::min((local - 1) * per_round + hop * (query.ranks - 1 - rank), total);
  const auto forward_stage = [&](std::int32_t op) { return (op / per_round) % local * query.ranks + rank; };
  const auto backward_stage = [&](std::int32_t op) {
    return (local - 1 - ((op - warmup) / per_round) % local) * query.ranks + rank;
  };
  std::vector<std::int32_t> forwards(static_cast<std::size_t>(local));
  std::vector<std::int32_t> backwards(forwards);
  std::vector<std::int32_t> weights(forwards);
  const auto next = [&](std::vector<std::int32_t>& counts, std::int32_t stage) {
    return counts[static_cast<std::size_t>(stage / query.ranks)]++;
  };

  TorchRow row;
  bubbles(row, rank);
  const std::int32_t pause = zero_bubble
                                 ? query.ranks - rank - 1
                                 : local * query.ranks + 2 * (query.ranks - 1 - rank) - (warmup + rank);
  std::int32_t weight_op = warmup;  // the next whose weight gradient is due
  const auto add_weight = [&] {
    const std::int32_t stage = backward_stage(weight_op++);
    row.push_back(TorchLeaf{kBackwardWeight, stage, next(weights, stage)});
  };
  for (std::int32_t op = 0; op < total + warmup; ++op) {
    if (op < total) {
      const std::int32_t stage = forward_stage(op);
      row.push_back(TorchLeaf{kForward, stage, next(forwards, stage)});
    } else if (!zero_bubble) {
      row.emplace_back();
    }
    if (op < warmup) {
      if (op == warmup - 1) bubbles(row, pause);
      continue;
    }
    const std::int32_t stage = backward_stage(op);
    row.push_back(TorchLeaf{zero_bubble ? kBackwardInput : kBackward, stage, next(backwards, stage)});
    if (zero_bubble && op - warmup >= rank) add_weight();
  }
  while (zero_bubble && weight_op < total + warmup) add_weight();
  return row;
}

/// Delays each forward until the stage before has made its own of that micro-batch (_add_bubbles_to_actions).
TorchOrder delayed(const TorchQuery& query, const TorchOrder& order) {
  std::vector<bool> forwarded(static_cast<std::size_t>(query.stages()) *
                              static_cast<std::size_t>(query.micro_batches));
  const auto at = [&](std::int32_t stage, std::int32_t m) {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(query.micro_batches) +
           static_cast<std::size_t>(m);
  };
  TorchOrder result(order.size());
  std::vector<std::size_t> next(order.size());
  for (bool more = true; more;) {
    more = false;
    std::vector<std::size_t> now;  // what ranks do in one step is seen in the next
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      if (next[rank] == order[rank].size()) continue;
      more = true;
      const TorchAction& action = order[rank][next[rank]];
      const TorchLeaf& leaf = action.first;
      if (leaf.act == kForward && leaf.stage != 0 && !forwarded[at(leaf.stage - 1, leaf.micro_batch)]) {
        result[rank].emplace_back();
        continue;
      }
      if (leaf.act == kForward) now.push_back(at(leaf.stage, leaf.micro_batch));
      result[rank].push_back(action);
      ++next[rank];
    }
    for (const std::size_t index : now) forwarded[index] = true;
  }
  return result;
}

TorchRow zbv(const TorchQuery& query, std::int32_t rank) {
  // Made for enough micro-batches to fill the pipeline; those that are too many become bubbles.
  const std::int32_t filled = std::max(2 * query.ranks - 1, query.micro_batches);
  const std::array<std::int32_t, 2> stage = {rank, query.stages() - 1 - rank};
  std::array<std::int32_t, 2> f{}, b{}, w{};
  TorchRow row;
  bubbles(row, rank);
  const auto add = [&](TorchAct act, std::size_t chunk, std::int32_t& count) {
    const std::int32_t m = count++;
    if (m < query.micro_batches) {
      row.push_back(TorchLeaf{act, stage[chunk], m});
    } else {
      row.emplace_back();
    }
  };
  const auto forward = [&](std::size_t chunk) { add(kForward, chunk, f[chunk]); };
  const auto backward = [&](std::size_t chunk) { add(kBackwardInput, chunk, b[chunk]); };
  const auto weight = [&](std::size_t chunk) { add(kBackwardWeight, chunk, w[chunk]); };
  const auto full = [&](std::size_t chunk) {
    backward(chunk);
    weight(chunk);
  };
  for (std::int32_t i = 0; i < 2 * (query.ranks - rank) - 1; ++i) forward(0);
  for (std::int32_t i = 0; i < rank; ++i) {
    forward(1);
    forward(0);
  }
  for (std::int32_t i = 0; i < query.ranks - rank; ++i) {
    forward(1);
    full(1);
  }
  while (f[1] < f[0] || f[0] < filled) {
    if (f[0] < filled) forward(0);
    full(0);
    forward(1);
    full(1);
  }
  for (std::int32_t i = 0; i < rank; ++i) {
    backward(0);
    backward(1);
  }
  for (std::int32_t i = 0; i < query.ranks - rank; ++i) full(0);
  while (w[1] < b[1]) weight(1);
  while (w[0] < b[0]) weight(0);
  return row;
}

class DualPipeV {
 public:
  DualPipeV(const TorchQuery& query, std::int32_t rank)
      : ranks_(query.ranks),
        rank_(rank),
        micro_batches_(query.micro_batches),
        stage_{rank, query.stages() - 1 - rank} {}

  TorchRow write() {
    const std::int32_t after = ranks_ - rank_ - 1;
    for (std::int32_t i = 0; i < after * 2; ++i) forward(0);
    for (std::int32_t i = 0; i < rank_ + 1; ++i) {
      forward(0);
      forward(1);
    }
    for (std::int32_t i = 0; i < after; ++i) {
      backward(1, true);
      weight();
      forward(1);
    }
    for (std::int32_t i = 0; i < micro_batches_ - ranks_ * 2 + rank_ + 1; ++i) {
      if (i == 0 && rank_ == ranks_ - 1) {
        forward(0);
        backward(1, false);
      } else {
        overlapped(0, 1);
      }
      overlapped(1, 0);
    }
    for (std::int32_t i = 0; i < after; ++i) {
      backward(1, false);
      overlapped(1, 0);
    }
    bool split = false;
    for (std::int32_t i = 0; i < rank_ + 1; ++i) {
      const bool middle = i == (rank_ + 1) / 2;
      if (middle && rank_ % 2 == 1) split = true;
      backward(1, split);
      if (middle && rank_ % 2 == 0) split = true;
      backward(0, split);
    }
    for (std::int32_t i = 0; i < after; ++i) {
      weight();
      backward(0, split);
    }
    for (std::int32_t i = 0; i < rank_ + 1; ++i) weight();
    return std::move(row_);
  }

 private:
  TorchLeaf next_forward(std::size_t half) { return {kForward, stage_[half], forwards_[half]++}; }
  void forward(std::size_t half) { row_.push_back(next_forward(half)); }
  void backward(std::size_t half, bool split) {
    const TorchLeaf leaf{split ? kBackwardInput : kBackward, stage_[half], backwards_[half]++};
    row_.push_back(leaf);
    if (split) weights_.push_back({kBackwardWeight, leaf.stage, leaf.micro_batch});
  }
  void overlapped(std::size_t forward_half, std::size_t backward_half) {
    const TorchLeaf first = next_forward(forward_half);
    row_.emplace_back(first, TorchLeaf{kBackward, stage_[backward_half], backwards_[backward_half]++});
  }
  void weight() {
    if (weights_.empty()) return;
    row_.push_back(weights_.front());
    weights_.pop_front();
  }

  std::int32_t ranks_, rank_, micro_batches_;
  std::array<std::int32_t, 2> stage_;
  std::array<std::int32_t, 2> forwards_{}, backwards_{};
  std::deque<TorchLeaf> weights_;  // put off
  TorchRow row_;
};

TorchRow row_of(const TorchQuery& query, std::int32_t rank) {
  switch (query.schedule) {
    case TorchSchedule::kGPipe:
      return gpipe(query, rank);
    case TorchSchedule::k1F1B:
      return displayed_1f1b(query, rank);
    case TorchSchedule::kLoopedBfs:
      return looped_bfs(query, rank);
    case TorchSchedule::kInterleaved1F1B:
      return interleaved(query, rank, false);
    case TorchSchedule::kInterleavedZeroBubble:
      return interleaved(query, rank, true);
    case TorchSchedule::kZbv:
      return zbv(query, rank);
    case TorchSchedule::kDualPipeV:
      return DualPipeV(query, rank).write();
  }
  return {};
}

}  // namespace

std::string_view torch_schedule_name(TorchSchedule schedule) {
  constexpr std::array<std::string_view, 7> kNames = {
      "GPipe",         "1F1B(IR)", "LoopedBFS", "Interleaved1F1B", "InterleavedZeroBubble",
      "ZBVZeroBubble", "DualPipeV"};
  return kNames[static_cast<std::size_t>(schedule)];
}

std::optional<std::string> torch_rejection(const TorchQuery& query) {
  switch (query.schedule) {
    case TorchSchedule::kGPipe:
    case TorchSchedule::k1F1B:
      if (query.micro_batches >= query.stages() ||
          !torch_refuses_few_micro_batches(query.version, query.schedule == TorchSchedule::k1F1B))
        return std::nullopt;
      return fmt::format("ValueError: Number of microbatches ({}) must be greater than or equal to the number of stages ({}).",
                         query.micro_batches, query.stages());
    case TorchSchedule::kLoopedBfs:
      return std::nullopt;
    case TorchSchedule::kInterleaved1F1B:
    case TorchSchedule::kInterleavedZeroBubble:
      if (query.micro_batches % rounds_of(query) == 0) return std::nullopt;
      return fmt::format(
          "ValueError: {} requires the number of microbatches to be a multiple of the number of rounds ({}), "
          "but got {}.",
          query.schedule == TorchSchedule::kInterleaved1F1B ? "Interleaved 1F1B" : "Zero bubble",
          rounds_of(query), query.micro_batches);
    case TorchSchedule::kZbv:
    case TorchSchedule::kDualPipeV:
      if (query.stages_per_rank != 2) {
        return fmt::format("ValueError: ZBV requires exactly 2 stages per rank, but got {}.",
                           query.stages_per_rank);
      }
      if (query.schedule == TorchSchedule::kZbv || query.micro_batches >= query.stages()) return std::nullopt;
      return fmt::format(
          "ValueError: DualPipeV requires at least as many microbatches as stages, but got {} microbatches "
          "and {} stages.",
          query.micro_batches, query.stages());
  }
  return std::nullopt;
}

TorchOrder torch_order(const TorchQuery& query) {
  TorchOrder order;
  for (std::int32_t rank = 0; rank < query.ranks; ++rank) order.push_back(row_of(query, rank));
  return query.schedule == TorchSchedule::kInterleavedZeroBubble ? delayed(query, order) : order;
}

std::vector<std::int32_t> torch_stage_ranks(std::int32_t ranks, std::int32_t stages, bool vee) {
  std::vector<std::int32_t> result;
  for (std::int32_t s = 0; s < stages; ++s) {
    const std::int32_t place = s % ranks;
    result.push_back(vee && (s / ranks) % 2 == 1 ? ranks - 1 - place : place);
  }
  return result;
}

}  // namespace lockstep::plan
