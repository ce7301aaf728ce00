#include "plan/schedule/dualpipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>

namespace lockstep::plan {
namespace {

/// One rank. `phase` counts the streams as the rank sees them: in DualPipe the first half of the ranks calls
/// the one from rank 0 phase 0, the second half the other.
class Rank {
 public:
  Rank(DualPipeKind kind, std::int32_t ranks, std::int32_t rank, std::int32_t micro_batches,
       RankTimeline& out)
      : both_ways_(kind == DualPipeKind::kBothWays),
        ranks_(ranks),
        rank_(rank),
        swapped_(both_ways_ && rank >= ranks / 2),
        micro_batches_(micro_batches),
        out_(out) {}

  void write() {
    // The distance to where the streams meet or turn, and how far away that is.
    const std::int32_t length = both_ways_ ? ranks_ / 2 : ranks_;
    const std::int32_t position = both_ways_ ? std::min(rank_, ranks_ - 1 - rank_) : rank_;
    const bool innermost = position == length - 1;
    const std::int32_t stream = both_ways_ ? micro_batches_ / 2 : micro_batches_;
    const std::int32_t after = length - position - 1;

    for (std::int32_t i = 0; i < after * 2; ++i) forward_chunk(0);

    receive_forward(0);
    for (std::int32_t i = 0; i < position + 1; ++i) {
      // DualPipe's innermost ranks send at once: they feed each other. Others, and all of DualPipeV, send
      // with the next batch.
      const bool send_now = both_ways_ && innermost;
      forward_chunk(0, false, send_now);
      receive_forward(0);
      forward_chunk(1, true, !innermost || i < position);
      if (!send_now) send_forward(0);
    }

    for (std::int32_t i = 0; i < after; ++i) {
      backward_chunk(1, true);
      receive_forward(1);
      weight_chunk();
      forward_chunk(1, false);
    }

    for (std::int32_t i = 0; i < stream - length * 2 + position + 1; ++i) {
      if (i == 0 && innermost) {
        forward_chunk(0, false, false);
        send_forward(1);
        backward_chunk(1, false, false);
        send_forward(0);
        send_backward(1);
      } else {
        forward_backward_chunk(0, 1, i != 0);
      }
      forward_backward_chunk(1, 0);
    }

    for (std::int32_t i = 0; i < after; ++i) {
      backward_chunk(1);
      forward_backward_chunk(1, 0);
    }

    bool split = false;  // gradients of weights are put off from the middle on
    for (std::int32_t i = 0; i < position + 1; ++i) {
      const bool middle = i == (position + 1) / 2;
      if (middle && position % 2 == 1) split = true;
      backward_chunk(1, split);
      if (middle && position % 2 == 0) split = true;
      backward_chunk(0, split);
    }
    for (std::int32_t i = 0; i < after; ++i) {
      weight_chunk();
      backward_chunk(0, true);
    }
    for (std::int32_t i = 0; i < position + 1; ++i) weight_chunk();
    commit();
  }

 private:
  std::int32_t stream_of(int phase) const { return swapped_ ? 1 - phase : phase; }
  bool is_head(std::int32_t stream) const { return rank_ == (stream == 0 ? 0 : ranks_ - 1); }
  bool is_tail(std::int32_t stream) const { return rank_ == (stream == 0 ? ranks_ - 1 : 0); }
  std::int32_t before(std::int32_t stream) const { return stream == 0 ? rank_ - 1 : rank_ + 1; }
  std::int32_t behind(std::int32_t stream) const { return stream == 0 ? rank_ + 1 : rank_ - 1; }

  void receive_forward(int phase) {
    const std::int32_t s = stream_of(phase);
    if (!is_head(s)) add(false, before(s), Carries::kActivation, s, received_forward_[index(s)]++);
  }
  void send_forward(int phase) {
    const std::int32_t s = stream_of(phase);
    if (!is_tail(s)) add(true, behind(s), Carries::kActivation, s, sent_forward_[index(s)]++);
  }
  void receive_backward(int phase) {
    const std::int32_t s = stream_of(phase);
    if (!is_tail(s)) add(false, behind(s), Carries::kGradient, s, received_backward_[index(s)]++);
  }
  void send_backward(int phase) {
    const std::int32_t s = stream_of(phase);
    if (!is_head(s)) add(true, before(s), Carries::kGradient, s, sent_backward_[index(s)]++);
  }

  void forward(int phase) {
    const std::int32_t s = stream_of(phase);
    out_.compute(StepKind::kForward, s, forward_[index(s)]++);
  }
  void backward(int phase, bool split) {
    const std::int32_t s = stream_of(phase);
    const std::int32_t micro_batch = backward_[index(s)]++;
    out_.compute(split ? StepKind::kBackwardInput : StepKind::kBackward, s, micro_batch);
    if (split) weights_.push_back({s, micro_batch});
  }

  void forward_chunk(int phase, bool receive = true, bool send = true) {
    if (receive) receive_forward(phase);
    commit();
    forward(phase);
    if (send) send_forward(phase);
  }
  void backward_chunk(int phase, bool split = false, bool send = true) {
    receive_backward(phase);
    commit();
    backward(phase, split);
    if (send) send_backward(phase);
  }
  void forward_backward_chunk(int forward_phase, int backward_phase, bool receive = true) {
    if (receive) receive_forward(forward_phase);
    receive_backward(backward_phase);
    commit();
    forward(forward_phase);
    backward(backward_phase, false);
    send_forward(forward_phase);
    send_backward(backward_phase);
  }
  void weight_chunk() {
    commit();
    if (weights_.empty()) return;
    out_.compute(StepKind::kBackwardWeight, weights_.front()[0], weights_.front()[1]);
    weights_.pop_front();
  }

  void add(bool send, std::int32_t peer, Carries carries, std::int32_t stream, std::int32_t micro_batch) {
    pending_.push_back(
        {.send = send, .world = true, .peer = peer, .payload = {carries, stream, micro_batch}});
  }
  void commit() {
    if (pending_.empty()) return;
    out_.issue(StepKind::kBatch, ++last_id_, pending_);
    out_.wait(last_id_);
    pending_.clear();
  }
  static std::size_t index(std::int32_t stream) { return static_cast<std::size_t>(stream); }

  bool both_ways_;
  std::int32_t ranks_, rank_;
  bool swapped_;
  std::int32_t micro_batches_;
  RankTimeline& out_;
  std::vector<Message> pending_;
  std::deque<std::array<std::int32_t, 2>> weights_;  // put off: stream and micro-batch
  std::uint32_t last_id_ = 0;
  std::array<std::int32_t, 2> forward_{}, backward_{}, sent_forward_{}, received_forward_{}, sent_backward_{},
      received_backward_{};  // how many so far, by stream
};

}  // namespace

std::optional<std::string> dualpipe_rejection(DualPipeKind kind, std::int32_t ranks,
                                              std::int32_t micro_batches) {
  const bool both_ways = kind == DualPipeKind::kBothWays;
  if (both_ways && ranks % 2 != 0) return "AssertionError: ";
  if (micro_batches >= ranks * 2 && !(both_ways && micro_batches % 2 != 0)) return std::nullopt;
  return fmt::format("AssertionError: num_chunks={}, num_ranks={}", micro_batches, ranks);
}

Timeline dualpipe_timeline(DualPipeKind kind, std::int32_t ranks, std::int32_t micro_batches) {
  Timeline timeline;
  timeline.placement = kind == DualPipeKind::kBothWays ? Placement::kTwoWay : Placement::kVee;
  timeline.ranks.resize(static_cast<std::size_t>(ranks));
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    Rank(kind, ranks, rank, micro_batches, timeline.ranks[static_cast<std::size_t>(rank)]).write();
  }
  return timeline;
}

}  // namespace lockstep::plan
