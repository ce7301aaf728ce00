#include "plan/schedule/megatron.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/schedule/megatron_exchange.h"
#include "plan/schedule/megatron_interleaved.h"

namespace lockstep::plan {
namespace {

/// forward_backward_no_pipelining: gradients are synchronized with the last micro-batch.
void write_no_pipelining(const MegatronQuery& query, RankTimeline& out) {
  const auto run = [&](std::int32_t micro_batch) {
    out.compute(StepKind::kForward, 0, micro_batch);
    if (!query.forward_only) out.compute(StepKind::kBackward, 0, micro_batch);
  };
  out.mark(Mark::kNoSyncEnter);
  for (std::int32_t m = 0; m + 1 < query.micro_batches; ++m) run(m);
  out.mark(Mark::kNoSyncExit);
  run(query.micro_batches - 1);
  if (!query.forward_only) out.mark(Mark::kFinalizeModelGrads);
}

/// forward_backward_pipelining_without_interleaving of one rank.
class OneForwardOneBackward {
 public:
  OneForwardOneBackward(const MegatronQuery& query, std::int32_t rank, RankTimeline& out)
      : query_(query),
        comm_(query, rank, out),
        out_(out),
        warmup_(std::min(query.stages - rank - 1, query.micro_batches)) {}

  void write() {
    out_.mark(Mark::kNoSyncEnter);
    for (std::int32_t m = 0; m < warmup_; ++m) {
      receive_forward(m);
      out_.compute(StepKind::kForward, 0, m);
      send_forward(m);
    }
    steady();
    if (query_.forward_only) return;
    for (std::int32_t i = 0; i < warmup_; ++i) {
      const std::int32_t m = query_.micro_batches - warmup_ + i;
      if (i + 1 == warmup_) exit_no_sync();
      if (!comm_.is_last()) comm_.communicate({.recv_next = gradient(m)});
      out_.compute(StepKind::kBackward, 0, m);
      send_backward(m);
    }
    exit_no_sync();
    out_.mark(Mark::kFinalizeModelGrads);
  }

 private:
  static Payload activation(std::int32_t m) { return {Carries::kActivation, 0, m}; }
  static Payload gradient(std::int32_t m) { return {Carries::kGradient, 0, m}; }

  void receive_forward(std::int32_t m) {
    if (!comm_.is_first()) comm_.communicate({.recv_prev = activation(m)});
  }
  void send_forward(std::int32_t m) {
    if (!comm_.is_last()) comm_.communicate({.send_next = activation(m)});
  }
  void send_backward(std::int32_t m) {
    if (!comm_.is_first()) comm_.communicate({.send_prev = gradient(m)});
  }
  void exit_no_sync() {
    if (!synchronizing_) out_.mark(Mark::kNoSyncExit);
    synchronizing_ = true;
  }

  void steady() {
    const std::int32_t remaining = query_.micro_batches - warmup_;
    if (remaining > 0) receive_forward(warmup_);
    for (std::int32_t i = 0; i < remaining; ++i) {
      const std::int32_t forward = warmup_ + i;
      const bool last = i + 1 == remaining;
      out_.compute(StepKind::kForward, 0, forward);
      if (query_.forward_only) {
        send_forward(forward);
        if (!last) receive_forward(forward + 1);
        continue;
      }
      if (!comm_.is_last()) comm_.communicate({.send_next = activation(forward), .recv_next = gradient(i)});
      if (warmup_ == 0 && last) exit_no_sync();
      out_.compute(StepKind::kBackward, 0, i);
      if (last) {
        send_backward(i);
      } else if (!comm_.is_first()) {
        comm_.communicate({.send_prev = gradient(i), .recv_prev = activation(forward + 1)});
      }
    }
  }

  const MegatronQuery& query_;
  MegatronCommunicator comm_;
  RankTimeline& out_;
  std::int32_t warmup_;
  bool synchronizing_ = false;
};

}  // namespace

std::optional<std::string> megatron_rejection(const MegatronQuery& query) {
  const MegatronOptions& options = query.options;
  // The configuration's own check comes before those of any schedule.
  if (options.overlap_p2p_comm_warmup_flush && (!options.overlap_p2p_comm || options.batch_p2p_comm)) {
    return "ValueError: Pipeline parallel communication overlapping in warmup and flush is only compatible "
           "with overlap_p2p_comm but not batch_p2p_comm.";
  }
  if (query.schedule == MegatronSchedule::kNoPipelining) return std::nullopt;
  if (query.schedule == MegatronSchedule::k1F1B) {
    if (!options.overlap_p2p_comm) return std::nullopt;
    return "ValueError: Non-interleaved pipeline parallelism does not support overlapping p2p communication";
  }
  if (options.overlap_p2p_comm && options.batch_p2p_comm) {
    return "ValueError: Can not use both overlap_p2p_comm and batch_p2p_comm";
  }
  for (std::int32_t rank = 0; rank < query.stages; ++rank) {
    const std::int32_t group = group_size_of(query, rank);
    if (group > query.micro_batches || group < query.stages) {
      return fmt::format(
          "ValueError: The number of contiguous micro-batches in a virtual pipeline stageshould range in "
          "[PP={} , M={}]",
          query.stages, query.micro_batches);
    }
    const std::int32_t rest = query.micro_batches % group;
    if (rest > 0 && rest < query.stages) {
      return fmt::format(
          "RuntimeError: The remainder of M (the total micro-batches) divided by N (number of contiguous "
          "micro-batches in a "
          "virtual pipeline stage) should be 0, or larger than or equal to the pipeline-parallel size, but "
          "it is {}. "
          "Otherwise, it introduces dependency bubbles in the pipeline and reduces throughput.",
          rest);
    }
  }
  return std::nullopt;
}

Timeline megatron_timeline(const MegatronQuery& query) {
  Timeline timeline;
  timeline.ranks.resize(static_cast<std::size_t>(query.stages));
  for (std::int32_t rank = 0; rank < query.stages; ++rank) {
    RankTimeline& out = timeline.ranks[static_cast<std::size_t>(rank)];
    switch (query.schedule) {
      case MegatronSchedule::kNoPipelining:
        write_no_pipelining(query, out);
        break;
      case MegatronSchedule::k1F1B:
        OneForwardOneBackward(query, rank, out).write();
        break;
      case MegatronSchedule::kInterleaved:
        write_interleaved(query, rank, out);
        break;
    }
  }
  return timeline;
}

}  // namespace lockstep::plan
