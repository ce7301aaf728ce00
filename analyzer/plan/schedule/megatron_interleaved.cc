#include "plan/schedule/megatron_interleaved.h"

#include <algorithm>
#include <deque>

#include "plan/schedule/megatron_exchange.h"

namespace lockstep::plan {

std::int32_t group_size_of(const MegatronQuery& query, std::int32_t rank) {
  const auto& sizes = query.options.group_sizes;
  if (sizes.empty()) return query.stages;
  return sizes.size() == 1 ? sizes[0] : sizes[static_cast<std::size_t>(rank)];
}

namespace {

/// Turns of the model chunks: groups of `group` micro-batches go through chunk 0, then through chunk 1, ... A
/// "virtual micro-batch" k is one micro-batch in one chunk; a backward takes the chunks from the last to the
/// first.
class Turns {
 public:
  Turns(std::int32_t micro_batches, std::int32_t chunks, std::int32_t group)
      : micro_batches_(micro_batches), chunks_(chunks), group_(group) {}

  std::int32_t total() const { return micro_batches_ * chunks_; }
  std::int32_t chunk(std::int32_t k, bool forward) const {
    const Place place = place_of(k % total());
    const std::int32_t chunk = place.offset / place.size;
    return forward ? chunk : chunks_ - 1 - chunk;
  }
  std::int32_t micro_batch(std::int32_t k) const {
    const Place place = place_of(k);
    return place.first + place.offset % place.size;
  }

 private:
  struct Place {
    std::int32_t first = 0, size = 0, offset = 0;  // of the group, and within it
  };
  Place place_of(std::int32_t k) const {
    // The last group takes what is left, however small.
    const std::int32_t group = k / (group_ * chunks_);
    const std::int32_t first = group * group_;
    return {first, std::min(group_, micro_batches_ - first), k - group * group_ * chunks_};
  }
  std::int32_t micro_batches_, chunks_, group_;
};

class Interleaved {
 public:
  Interleaved(const MegatronQuery& query, std::int32_t rank, RankTimeline& out)
      : query_(query),
        turns_(query.micro_batches, query.chunks, group_size_of(query, rank)),
        comm_(query, rank, out),
        out_(out),
        rank_(rank),
        overlap_(query.options.overlap_p2p_comm),
        flush_(query.options.overlap_p2p_comm_warmup_flush),
        forwards_received_(static_cast<std::size_t>(query.chunks)),
        gradients_received_(static_cast<std::size_t>(query.chunks)) {
    const std::int32_t ahead =
        (query.stages - rank - 1) * 2 + (query.chunks - 1) * group_size_of(query, rank);
    const bool all = query.forward_only || ahead >= turns_.total();
    warmup_ = all ? turns_.total() : ahead;
    // One stage has nothing to run ahead of.
    if (!query.forward_only && query.stages == 1) warmup_ = 0;
    all_in_warmup_ = warmup_ >= turns_.total();
    remaining_ = turns_.total() - warmup_;
  }

  void write() {
    disable_sync();
    if (!comm_.is_first()) comm_.communicate({.recv_prev = next_activation(0)});
    for (std::int32_t k = 0; k < warmup_; ++k) warm_up(k);
    for (std::int32_t k = 0; k < remaining_; ++k) overlap_ ? steady_overlapped(k) : steady(k);
    if (query_.forward_only) return;
    if (all_in_warmup_ && !comm_.is_last())
      comm_.communicate({.recv_next = next_gradient(query_.chunks - 1)});
    for (std::int32_t k = remaining_; k < turns_.total(); ++k) cool_down(k);
    comm_.wait_for(send_prev_);
    enable_sync();
    out_.mark(Mark::kFinalizeModelGrads);
  }

 private:
  bool is_first_stage(std::int32_t chunk) const { return comm_.is_first() && chunk == 0; }
  bool is_last_stage(std::int32_t chunk) const { return comm_.is_last() && chunk + 1 == query_.chunks; }

  /// What arrives next for this chunk: tensors come in order of micro-batches. The sender is one chunk before
  /// where the ring wraps.
  Payload next_activation(std::int32_t chunk) {
    return {Carries::kActivation, comm_.is_first() ? chunk - 1 : chunk,
            forwards_received_[static_cast<std::size_t>(chunk)]++};
  }
  Payload next_gradient(std::int32_t chunk) {
    return {Carries::kGradient, comm_.is_last() ? chunk + 1 : chunk,
            gradients_received_[static_cast<std::size_t>(chunk)]++};
  }

  std::optional<Payload> activation_of(std::int32_t k) const {
    const std::int32_t chunk = turns_.chunk(k, true);
    if (is_last_stage(chunk)) return std::nullopt;
    return Payload{Carries::kActivation, chunk, turns_.micro_batch(k)};
  }
  std::optional<Payload> gradient_of(std::int32_t k) const {
    const std::int32_t chunk = turns_.chunk(k, false);
    if (is_first_stage(chunk)) return std::nullopt;
    return Payload{Carries::kGradient, chunk, turns_.micro_batch(k)};
  }

  /// recv_tensor_from_previous_stage: the chunk that the tensor after step k belongs to; nothing where none
  /// comes. The leading stage runs stages - 1 steps ahead of the ending one, which feeds it the chunk after
  /// its own.
  std::optional<std::int32_t> arriving(std::int32_t k, bool forward) const {
    if (!(forward ? comm_.is_first() : comm_.is_last())) return turns_.chunk(k + 1, forward);
    if (k < query_.stages - 1) return std::nullopt;
    const std::int32_t ending = turns_.chunk(k - (query_.stages - 1), forward);
    if (ending == (forward ? query_.chunks - 1 : 0)) return std::nullopt;
    return forward ? ending + 1 : ending - 1;
  }
  std::optional<Payload> arriving_activation(std::int32_t k, bool wanted = true) {
    const std::optional<std::int32_t> chunk = arriving(k, true);
    return wanted && chunk ? std::optional(next_activation(*chunk)) : std::nullopt;
  }
  std::optional<Payload> arriving_gradient(std::int32_t k, bool wanted = true) {
    const std::optional<std::int32_t> chunk = arriving(k, false);
    return wanted && chunk ? std::optional(next_gradient(*chunk)) : std::nullopt;
  }

  void forward(std::int32_t k) {
    out_.compute(StepKind::kForward, turns_.chunk(k, true), turns_.micro_batch(k));
  }
  /// Gradients of a chunk are synchronized with its last micro-batch.
  void backward(std::int32_t k) {
    if (turns_.micro_batch(k) == query_.micro_batches - 1) enable_sync();
    out_.compute(StepKind::kBackward, turns_.chunk(k, false), turns_.micro_batch(k));
    disable_sync();
  }
  void enable_sync() {
    if (!synchronizing_) out_.mark(Mark::kNoSyncExit);
    synchronizing_ = true;
  }
  void disable_sync() {
    if (synchronizing_) out_.mark(Mark::kNoSyncEnter);
    synchronizing_ = false;
  }

  void wait_oldest(std::deque<std::uint32_t>& requests) {
    if (requests.empty()) return;
    comm_.wait_for(requests.front());
    requests.pop_front();
  }
  void keep_forward(const Requests& requests) {
    comm_.wait_for(send_next_);
    send_next_ = requests.send_next;
    if (requests.recv_prev != 0) recv_prev_.push_back(requests.recv_prev);
  }
  void keep_backward(const Requests& requests) {
    comm_.wait_for(send_prev_);
    send_prev_ = requests.send_prev;
    if (requests.recv_next != 0) recv_next_.push_back(requests.recv_next);
  }

  void warm_up(std::int32_t k) {
    if (flush_ && k != 0 && !is_first_stage(turns_.chunk(k, true))) wait_oldest(recv_prev_);
    const std::optional<Payload> incoming = arriving_activation(k, k != turns_.total() - 1);
    if (flush_ && !comm_.is_first()) {
      const Requests ahead = comm_.communicate({.recv_prev = incoming}, false);
      if (ahead.recv_prev != 0) recv_prev_.push_back(ahead.recv_prev);
    }
    forward(k);
    // With the last one the first gradient is asked for.
    const bool turns_round = k == warmup_ - 1 && !query_.forward_only && !all_in_warmup_;
    if (flush_) {
      const std::optional<Payload> now = comm_.is_first() ? incoming : std::nullopt;
      keep_forward(comm_.communicate({.send_next = activation_of(k), .recv_prev = now}, false));
    } else {
      Exchange exchange{.send_next = activation_of(k), .recv_prev = incoming};
      if (turns_round && !overlap_ && !comm_.is_last()) exchange.recv_next = next_gradient(query_.chunks - 1);
      comm_.communicate(exchange);
    }
    if (!overlap_ || !turns_round) return;
    Exchange first;
    if (!comm_.is_last()) first.recv_next = next_gradient(query_.chunks - 1);
    keep_backward(comm_.communicate(first, false));
  }

  void steady(std::int32_t k) {
    const std::int32_t forward_k = k + warmup_;
    forward(forward_k);
    backward(k);
    // The receive of the last step was made before the first.
    const std::optional<Payload> incoming = arriving_activation(forward_k, k != remaining_ - 1);
    comm_.communicate({.send_next = activation_of(forward_k),
                       .send_prev = gradient_of(k),
                       .recv_prev = incoming,
                       .recv_next = arriving_gradient(k)});
  }

  void steady_overlapped(std::int32_t k) {
    const std::int32_t forward_k = k + warmup_;
    if (!is_first_stage(turns_.chunk(forward_k, true))) wait_oldest(recv_prev_);
    forward(forward_k);
    const std::optional<Payload> incoming = arriving_activation(forward_k, k != remaining_ - 1);
    keep_forward(comm_.communicate({.send_next = activation_of(forward_k), .recv_prev = incoming}, false));
    if (!is_last_stage(turns_.chunk(k, false))) wait_oldest(recv_next_);
    backward(k);
    keep_backward(comm_.communicate({.send_prev = gradient_of(k), .recv_next = arriving_gradient(k)}, false));
  }

  void cool_down(std::int32_t k) {
    if (k != 0 && !is_last_stage(turns_.chunk(k, false))) wait_oldest(recv_next_);
    const std::optional<Payload> incoming = arriving_gradient(k, k != turns_.total() - 1);
    if (flush_ && !comm_.is_last()) {
      const Requests ahead = comm_.communicate({.recv_next = incoming}, false);
      if (ahead.recv_next != 0) recv_next_.push_back(ahead.recv_next);
    }
    backward(k);
    if (flush_) {
      const std::optional<Payload> now = comm_.is_last() ? incoming : std::nullopt;
      keep_backward(comm_.communicate({.send_prev = gradient_of(k), .recv_next = now}, false));
    } else {
      comm_.communicate({.send_prev = gradient_of(k), .recv_next = incoming});
    }
  }

  const MegatronQuery& query_;
  Turns turns_;
  MegatronCommunicator comm_;
  RankTimeline& out_;
  std::int32_t rank_;
  bool overlap_, flush_;
  std::int32_t warmup_ = 0, remaining_ = 0;
  bool all_in_warmup_ = false;
  bool synchronizing_ = true;
  std::vector<std::int32_t> forwards_received_, gradients_received_;  // by chunk
  std::deque<std::uint32_t> recv_prev_, recv_next_;                   // not yet waited for
  std::uint32_t send_next_ = 0, send_prev_ = 0;
};

}  // namespace

void write_interleaved(const MegatronQuery& query, std::int32_t rank, RankTimeline& out) {
  Interleaved(query, rank, out).write();
}

}  // namespace lockstep::plan
