#include "plan/schedule/torch_runtime.h"

#include <algorithm>
#include <optional>

namespace lockstep::plan {
namespace {

class Stage {
 public:
  Stage(std::int32_t stages, std::int32_t stage, std::int32_t micro_batches, bool forward_only,
        RankTimeline& out)
      : stages_(stages),
        stage_(stage),
        micro_batches_(micro_batches),
        forward_only_(forward_only),
        out_(out) {}

  /// ScheduleGPipe: sends are waited for after all forwards, and after all backwards.
  void write_gpipe() {
    std::vector<std::uint32_t> sends;
    const auto send = [&](const std::optional<Message>& message) {
      if (const auto id = batch({message})) sends.push_back(*id);
    };
    const auto wait_for_sends = [&] {
      for (const std::uint32_t id : sends) out_.wait(id);
      sends.clear();
    };
    for (std::int32_t m = 0; m < micro_batches_; ++m) {
      wait(batch({forward_receive(m)}));
      forward(m);
      send(forward_send(m));
    }
    wait_for_sends();
    if (forward_only_) return;
    for (std::int32_t m = 0; m < micro_batches_; ++m) {
      wait(batch({backward_receive(m)}));
      backward(m);
      send(backward_send(m));
    }
    wait_for_sends();
    out_.mark(Mark::kReduceGrad, stage_);
  }

  /// Schedule1F1B: the last send of the warm-up is fused with the first receive of a gradient, and so on in
  /// turns.
  void write_1f1b() {
    const std::int32_t warmup = std::min(micro_batches_, stages_ - stage_);
    std::optional<std::uint32_t> sending;
    std::int32_t forwards = 0;
    std::int32_t backwards = 0;
    for (; forwards < warmup; ++forwards) {
      wait(batch({forward_receive(forwards)}));
      forward(forwards);
      wait(sending);
      if (forwards != warmup - 1) sending = batch({forward_send(forwards)});
    }
    while (true) {
      wait(batch({forward_send(forwards - 1), backward_receive(backwards)}));
      backward(backwards++);
      if (forwards == micro_batches_) break;
      wait(batch({backward_send(backwards - 1), forward_receive(forwards)}));
      forward(forwards++);
    }
    sending = batch({backward_send(backwards - 1)});
    while (backwards < micro_batches_) {
      wait(batch({backward_receive(backwards)}));
      backward(backwards);
      wait(sending);
      sending = batch({backward_send(backwards++)});
    }
    wait(sending);
    out_.mark(Mark::kReduceGrad, stage_);
  }

 private:
  void forward(std::int32_t m) { out_.compute(StepKind::kForward, stage_, m); }
  void backward(std::int32_t m) { out_.compute(StepKind::kBackward, stage_, m); }

  std::optional<Message> message(bool send, std::int32_t peer, Carries carries, std::int32_t m) const {
    if (peer < 0 || peer >= stages_) return std::nullopt;
    return Message{.send = send, .peer = peer, .payload = {carries, send ? stage_ : peer, m}};
  }
  std::optional<Message> forward_receive(std::int32_t m) const {
    return message(false, stage_ - 1, Carries::kActivation, m);
  }
  std::optional<Message> forward_send(std::int32_t m) const {
    return message(true, stage_ + 1, Carries::kActivation, m);
  }
  std::optional<Message> backward_receive(std::int32_t m) const {
    return message(false, stage_ + 1, Carries::kGradient, m);
  }
  std::optional<Message> backward_send(std::int32_t m) const {
    return message(true, stage_ - 1, Carries::kGradient, m);
  }

  /// Nothing where there is nothing to exchange: no call is made then.
  std::optional<std::uint32_t> batch(std::initializer_list<std::optional<Message>> list) {
    std::vector<Message> messages;
    for (const std::optional<Message>& one : list) {
      if (one) messages.push_back(*one);
    }
    if (messages.empty()) return std::nullopt;
    const auto id = static_cast<std::uint32_t>(out_.steps.size());
    out_.issue(StepKind::kBatch, id, messages);
    return id;
  }
  void wait(const std::optional<std::uint32_t>& id) {
    if (id) out_.wait(*id);
  }

  std::int32_t stages_, stage_, micro_batches_;
  bool forward_only_;
  RankTimeline& out_;
};

}  // namespace

Timeline torch_runtime_timeline(TorchRuntimeSchedule schedule, std::int32_t stages,
                                std::int32_t micro_batches, bool forward_only) {
  Timeline timeline;
  timeline.placement = Placement::kExplicit;
  timeline.ranks.resize(static_cast<std::size_t>(stages));
  for (std::int32_t s = 0; s < stages; ++s) {
    Stage stage(stages, s, micro_batches, forward_only, timeline.ranks[static_cast<std::size_t>(s)]);
    schedule == TorchRuntimeSchedule::kGPipe ? stage.write_gpipe() : stage.write_1f1b();
  }
  return timeline;
}

}  // namespace lockstep::plan
