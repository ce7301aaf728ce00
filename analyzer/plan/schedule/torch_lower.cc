#include "plan/schedule/torch_lower.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include "plan/schedule/python_set.h"
#include "plan/schedule/torch_validate.h"

namespace lockstep::plan {
namespace {

using enum TorchAct;

bool is_compute(TorchAct act) {
  return act == kForward || act == kBackward || act == kBackwardInput || act == kBackwardWeight;
}

/// The next stages that a row uses, each once, from a given position on. Positions only grow.
class UpcomingStages {
 public:
  explicit UpcomingStages(const TorchRow& row) {
    std::unordered_map<std::int32_t, std::size_t> known;
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (std::size_t l = 0; l < row[i].leaf_count(); ++l) {
        const auto [at, is_new] = known.try_emplace(row[i].leaf(l).stage, stages_.size());
        if (is_new) stages_.push_back({.stage = row[i].leaf(l).stage});
        stages_[at->second].uses.push_back(i * 2 + l);
      }
    }
  }

  /// At most `count`, but both of an overlapped pair where the first of them still has room.
  std::span<const std::int32_t> from(std::size_t position, std::size_t count) {
    next_.clear();
    for (Stage& stage : stages_) {
      while (stage.passed < stage.uses.size() && stage.uses[stage.passed] < position * 2) ++stage.passed;
      if (stage.passed < stage.uses.size()) next_.emplace_back(stage.uses[stage.passed], stage.stage);
    }
    std::ranges::sort(next_);
    found_.clear();
    for (std::size_t i = 0; i < next_.size(); ++i) {
      const bool pair_goes_on = i > 0 && next_[i].first / 2 == next_[i - 1].first / 2;
      if (found_.size() >= count && !pair_goes_on) break;
      found_.push_back(next_[i].second);
    }
    return found_;
  }

 private:
  struct Stage {
    std::int32_t stage = 0;
    std::size_t passed = 0;
    std::vector<std::size_t> uses{};  ///< 2 * position + place in the pair
  };
  std::vector<Stage> stages_;
  std::vector<std::pair<std::size_t, std::int32_t>> next_;  // use, stage
  std::vector<std::int32_t> found_;
};

/// What is in each rank's schedule so far, of what others depend on: one bit for each (stage, micro-batch,
/// kind).
class Progress {
 public:
  enum Kind : std::size_t { kDoneForward, kDoneBackward, kGotActivation, kGotGradient, kKinds };
  Progress(std::size_t stages, std::size_t micro_batches)
      : micro_batches_(micro_batches), bits_(stages * micro_batches * kKinds) {}
  bool has(Kind kind, std::int32_t stage, std::int32_t m) const { return bits_[at(kind, stage, m)]; }
  void set(Kind kind, std::int32_t stage, std::int32_t m) { bits_[at(kind, stage, m)] = true; }

 private:
  std::size_t at(Kind kind, std::int32_t stage, std::int32_t m) const {
    return (static_cast<std::size_t>(stage) * micro_batches_ + static_cast<std::size_t>(m)) * kKinds + kind;
  }
  std::size_t micro_batches_;
  std::vector<bool> bits_;
};

class SendRecvWriter {
 public:
  SendRecvWriter(const TorchOrder& order, const std::vector<std::int32_t>& stage_ranks,
                 std::int32_t micro_batches)
      : order_(order),
        ranks_(stage_ranks),
        last_(static_cast<std::int32_t>(stage_ranks.size()) - 1),
        progress_(stage_ranks.size(), static_cast<std::size_t>(micro_batches)),
        result_(order.size()) {}

  Result<TorchOrder> write() {
    std::vector<std::size_t> next(order_.size());
    for (bool left = true; left;) {
      left = false;
      bool moved = false;
      for (std::size_t rank = 0; rank < order_.size(); ++rank) {
        if (next[rank] == order_[rank].size()) continue;
        left = true;
        const TorchAction& action = order_[rank][next[rank]];
        if (!is_ready(action)) continue;
        place(rank, action);
        ++next[rank];
        moved = true;
      }
      if (left && !moved) {
        return Error{ErrorCode::kMalformed,
                     "AssertionError: Malformed compute schedule, can't schedule sends/recvs"};
      }
    }
    return std::move(result_);
  }

 private:
  std::int32_t rank_of(std::int32_t stage) const { return ranks_[static_cast<std::size_t>(stage)]; }
  bool apart(std::int32_t a, std::int32_t b) const { return rank_of(a) != rank_of(b); }

  bool is_ready(const TorchAction& action) const {
    for (std::size_t l = 0; l < action.leaf_count(); ++l) {
      const TorchLeaf& leaf = action.leaf(l);
      const bool forward = leaf.act == kForward && leaf.stage != 0;
      const bool backward = (leaf.act == kBackward || leaf.act == kBackwardInput) && leaf.stage != last_;
      if (forward && !progress_.has(Progress::kGotActivation, leaf.stage, leaf.micro_batch) &&
          (apart(leaf.stage, leaf.stage - 1) ||
           !progress_.has(Progress::kDoneForward, leaf.stage - 1, leaf.micro_batch))) {
        return false;
      }
      if (backward && !progress_.has(Progress::kGotGradient, leaf.stage, leaf.micro_batch) &&
          (apart(leaf.stage, leaf.stage + 1) ||
           !progress_.has(Progress::kDoneBackward, leaf.stage + 1, leaf.micro_batch))) {
        return false;
      }
    }
    return true;
  }

  void place(std::size_t rank, const TorchAction& action) {
    if (action.is_bubble()) return;
    result_[rank].push_back(action);
    for (std::size_t l = 0; l < action.leaf_count(); ++l) {
      const TorchLeaf& leaf = action.leaf(l);
      const bool forward = leaf.act == kForward;
      if (!forward && leaf.act != kBackward && leaf.act != kBackwardInput) continue;
      progress_.set(forward ? Progress::kDoneForward : Progress::kDoneBackward, leaf.stage, leaf.micro_batch);
      const std::int32_t peer = forward ? leaf.stage + 1 : leaf.stage - 1;
      if (peer < 0 || peer > last_ || !apart(leaf.stage, peer)) continue;
      result_[rank].push_back(
          TorchLeaf{forward ? kSendForward : kSendBackward, leaf.stage, leaf.micro_batch});
      result_[static_cast<std::size_t>(rank_of(peer))].push_back(
          TorchLeaf{forward ? kRecvForward : kRecvBackward, peer, leaf.micro_batch});
      progress_.set(forward ? Progress::kGotActivation : Progress::kGotGradient, peer, leaf.micro_batch);
    }
  }

  const TorchOrder& order_;
  const std::vector<std::int32_t>& ranks_;
  std::int32_t last_;
  Progress progress_;
  TorchOrder result_;
};

TorchRow compute_only(const TorchRow& row) {
  TorchRow result;
  std::ranges::copy_if(row, std::back_inserter(result),
                       [](const TorchAction& a) { return is_compute(a.first.act); });
  return result;
}

}  // namespace

TorchRow add_reduce_grad(const TorchRow& row, std::int32_t micro_batches, TorchWaits waits) {
  TorchRow result;
  std::unordered_map<std::int32_t, std::int32_t> done;
  for (const TorchAction& action : row) {
    if (action.is_bubble()) continue;
    result.push_back(action);
    for (std::size_t l = 0; l < action.leaf_count(); ++l) {
      const TorchLeaf& leaf = action.leaf(l);
      if (leaf.act != kBackward && leaf.act != kBackwardWeight) continue;
      if (++done[leaf.stage] != micro_batches) continue;
      result.push_back(TorchLeaf{kReduceGrad, leaf.stage, -1});
      if (waits == TorchWaits::kNamed) result.push_back(TorchLeaf{kWaitReduceGrad, leaf.stage, -1});
    }
  }
  return result;
}

TorchRow add_wait_send(const TorchRow& row) {
  TorchRow result;
  std::vector<TorchLeaf> waits;  // in order of the sends, one for each that is not waited for yet
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> activations;  // stage and micro-batch: place in `waits`
  for (const TorchAction& action : row) {
    result.push_back(action);
    for (std::size_t l = 0; l < action.leaf_count(); ++l) {
      const TorchLeaf& leaf = action.leaf(l);
      const std::pair key(leaf.stage, leaf.micro_batch);
      if (leaf.act == kSendForward) {
        activations.emplace(key, waits.size());
        waits.push_back({kWaitSendForward, leaf.stage, leaf.micro_batch});
      } else if (leaf.act == kSendBackward) {
        waits.push_back({kWaitSendBackward, leaf.stage, leaf.micro_batch});
      } else if (leaf.act == kBackward || leaf.act == kBackwardInput) {
        const auto sent = activations.find(key);
        if (sent == activations.end()) continue;
        result.push_back(waits[sent->second]);
        waits[sent->second].act = kBubble;
        activations.erase(sent);
      }
    }
  }
  for (const TorchLeaf& wait : waits) {
    if (wait.act != kBubble) result.push_back(wait);
  }
  return result;
}

TorchRow add_unshard_reshard(const TorchRow& row, std::size_t max_active_stages) {
  TorchRow result;
  PythonIntSet active;
  UpcomingStages upcoming(row);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i].is_bubble()) continue;
    const std::span<const std::int32_t> next = upcoming.from(i, max_active_stages);
    for (const std::int32_t stage : active.in_order()) {
      if (std::ranges::find(next, stage) != next.end()) continue;
      active.erase(stage);
      result.push_back(TorchLeaf{kReshard, stage, -1});
    }
    for (const std::int32_t stage : next) {
      if (active.contains(stage)) continue;
      active.insert(stage);
      result.push_back(TorchLeaf{kUnshard, stage, -1});
    }
    result.push_back(row[i]);
  }
  for (const std::int32_t stage : active.in_order()) result.push_back(TorchLeaf{kReshard, stage, -1});
  return result;
}

Result<TorchOrder> add_send_recv(const TorchOrder& order, const std::vector<std::int32_t>& stage_ranks,
                                 std::int32_t micro_batches) {
  return SendRecvWriter(order, stage_ranks, micro_batches).write();
}

Result<TorchLowered> lower_torch_order(const TorchOrder& order, std::int32_t stages,
                                       std::int32_t micro_batches, TorchWaits waits) {
  TorchLowered lowered;
  if (const auto error = torch_validation_error(order, stages, micro_batches, lowered.stage_ranks)) {
    return Error{ErrorCode::kMalformed, *error};
  }
  TorchOrder compute;
  TorchOrder with_gradients;
  for (const TorchRow& row : order) {
    compute.push_back(compute_only(row));
    with_gradients.push_back(add_reduce_grad(add_unshard_reshard(compute.back()), micro_batches, waits));
  }
  Result<TorchOrder> comms = add_send_recv(with_gradients, lowered.stage_ranks, micro_batches);
  if (!comms) return comms.error();
  if (waits == TorchWaits::kNamed) std::ranges::transform(*comms, comms->begin(), add_wait_send);
  Result<TorchOrder> sendrecv = add_send_recv(compute, lowered.stage_ranks, micro_batches);
  if (!sendrecv) return sendrecv.error();
  lowered.compute_comms = std::move(*comms);
  lowered.compute_sendrecv = std::move(*sendrecv);
  return lowered;
}

Timeline torch_timeline(const TorchOrder& compute_comms, const std::vector<std::int32_t>& stage_ranks) {
  Timeline timeline;
  timeline.placement = Placement::kExplicit;
  const auto stages = static_cast<std::int32_t>(stage_ranks.size());
  for (const TorchRow& row : compute_comms) {
    RankTimeline& out = timeline.ranks.emplace_back();
    std::uint32_t last_id = 0;
    std::vector<std::uint32_t> sends;
    std::unordered_map<std::uint64_t, std::uint32_t> sent;      // those not waited for yet
    std::unordered_map<std::uint64_t, std::uint32_t> receives;  // by kind, stage and micro-batch
    const auto key = [](bool gradient, std::int32_t stage, std::int32_t m) {
      return (static_cast<std::uint64_t>(gradient) << 62) | (static_cast<std::uint64_t>(stage) << 31) |
             static_cast<std::uint64_t>(m);
    };
    const auto issue = [&](bool send, std::int32_t peer, Carries carries, const TorchLeaf& leaf) {
      if (peer < 0 || peer >= stages) return;
      const Message message{.send = send,
                            .peer = stage_ranks[static_cast<std::size_t>(peer)],
                            .payload = {carries, send ? leaf.stage : peer, leaf.micro_batch}};
      out.issue(StepKind::kBatch, ++last_id, {&message, 1});
      if (send) {
        sends.push_back(last_id);
        sent[key(carries == Carries::kGradient, leaf.stage, leaf.micro_batch)] = last_id;
      } else {
        receives[key(carries == Carries::kGradient, leaf.stage, leaf.micro_batch)] = last_id;
      }
    };
    const auto compute = [&](StepKind kind, const TorchLeaf& leaf) {
      const bool gradient = kind != StepKind::kForward;
      const auto received = receives.find(key(gradient, leaf.stage, leaf.micro_batch));
      if (kind != StepKind::kBackwardWeight && received != receives.end()) {
        out.wait(received->second);
        receives.erase(received);
      }
      out.compute(kind, leaf.stage, leaf.micro_batch);
    };
    for (const TorchAction& action : row) {
      for (std::size_t l = 0; l < action.leaf_count(); ++l) {
        const TorchLeaf& leaf = action.leaf(l);
        switch (leaf.act) {
          case kBubble:
            break;
          case kForward:
            compute(StepKind::kForward, leaf);
            break;
          case kBackward:
            compute(StepKind::kBackward, leaf);
            break;
          case kBackwardInput:
            compute(StepKind::kBackwardInput, leaf);
            break;
          case kBackwardWeight:
            compute(StepKind::kBackwardWeight, leaf);
            break;
          case kUnshard:
            out.mark(Mark::kUnshard, leaf.stage);
            break;
          case kReshard:
            out.mark(Mark::kReshard, leaf.stage);
            break;
          case kReduceGrad:
            out.mark(Mark::kReduceGrad, leaf.stage);
            break;
          case kSendForward:
            issue(true, leaf.stage + 1, Carries::kActivation, leaf);
            break;
          case kRecvForward:
            issue(false, leaf.stage - 1, Carries::kActivation, leaf);
            break;
          case kSendBackward:
            issue(true, leaf.stage - 1, Carries::kGradient, leaf);
            break;
          case kRecvBackward:
            issue(false, leaf.stage + 1, Carries::kGradient, leaf);
            break;
          case kWaitReduceGrad:
            break;
          case kWaitSendForward:
          case kWaitSendBackward:
            if (const auto send = sent.find(key(leaf.act == kWaitSendBackward, leaf.stage, leaf.micro_batch)); send != sent.end()) {
              out.wait(send->second);
              std::erase(sends, send->second);
              sent.erase(send);
            }
            break;
        }
      }
    }
    for (auto id = sends.rbegin(); id != sends.rend(); ++id) out.wait(*id);
  }
  return timeline;
}

}  // namespace lockstep::plan
