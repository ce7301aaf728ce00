#include "plan/schedule/deepspeed.h"

#include <algorithm>
#include <array>

namespace lockstep::plan {

using Name = Instruction::Name;

std::string_view instruction_name(Name name) {
  constexpr std::array<std::string_view, 10> kNames = {
      "LoadMicroBatch", "ForwardPass", "BackwardPass",    "SendActivation", "RecvActivation",
      "SendGrad",       "RecvGrad",    "ReduceTiedGrads", "ReduceGrads",    "OptimizerStep"};
  return kNames[static_cast<std::size_t>(name)];
}

bool takes_buffer(Name name) { return name < Name::kReduceTiedGrads; }

namespace {

class StageWriter {
 public:
  StageWriter(std::int32_t micro_batches, std::int32_t buffers)
      : micro_batches_(micro_batches), out_{.buffers = buffers} {}

  bool valid(std::int32_t micro_batch) const { return micro_batch >= 0 && micro_batch < micro_batches_; }
  void add(Name name, std::int32_t micro_batch) {
    out_.instructions.push_back({name, micro_batch % out_.buffers, micro_batch});
  }
  void add_in(Name name, std::int32_t buffer, std::int32_t micro_batch) {
    out_.instructions.push_back({name, buffer, micro_batch});
  }
  void add(Name name) { out_.instructions.push_back({.name = name}); }
  void end_step() { out_.step_ends.push_back(static_cast<std::uint32_t>(out_.instructions.size())); }
  StageInstructions take() { return std::move(out_); }

 private:
  std::int32_t micro_batches_;
  StageInstructions out_;
};

struct Turn {
  std::int32_t micro_batch = 0;  ///< may be out of range: a bubble
  bool forward = false;
};

/// Forward and backward alternate; a stage works forward in the steps of its own parity. Its forward of
/// micro-batch m is step stage + 2m, its backward step 2 * stages - 1 - stage + 2m.
Turn turn_of(std::int32_t step, std::int32_t stage, std::int32_t stages) {
  const bool forward = (step - stage) % 2 == 0;
  return {(step - (forward ? stage : 2 * stages - 1 - stage)) / 2, forward};
}

}  // namespace

std::vector<StageInstructions> deepspeed_train(std::int32_t stages, std::int32_t micro_batches,
                                               DeepSpeedVersion version) {
  const bool old = version == DeepSpeedVersion::kOld;
  std::vector<StageInstructions> all;
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    const std::int32_t in_flight = std::min(stages - stage + (old ? 1 : 0), micro_batches);
    StageWriter out(micro_batches, std::max(2, in_flight));
    const bool has_previous = stage > 0;
    const bool has_next = stage + 1 < stages;
    const std::int32_t steps = 2 * (micro_batches + stages - 1);
    std::int32_t last = -1;  // micro-batch of the step before
    for (std::int32_t step = 0; step < steps; ++step) {
      const Turn turn = turn_of(step, stage, stages);
      const std::int32_t now = turn.micro_batch;
      const bool receives = out.valid(now) && (turn.forward ? has_previous : has_next);
      const bool sends = out.valid(last) && (turn.forward ? has_previous : has_next);
      const Name receive = turn.forward ? Name::kRecvActivation : Name::kRecvGrad;
      const Name send = turn.forward ? Name::kSendGrad : Name::kSendActivation;
      // Old: activations first. New: in a forward step the gradient is sent first, in a backward step it is
      // received first.
      const bool receive_first = old == turn.forward;
      if (receives && receive_first) out.add(receive, now);
      if (sends) out.add(send, last);
      if (receives && !receive_first) out.add(receive, now);
      if (turn.forward && out.valid(now) && (!has_previous || !has_next)) out.add(Name::kLoadMicroBatch, now);
      if (out.valid(now)) out.add(turn.forward ? Name::kForwardPass : Name::kBackwardPass, now);
      if (step == steps - 1) {
        out.add(Name::kReduceTiedGrads);
        out.add(Name::kReduceGrads);
        out.add(Name::kOptimizerStep);
      }
      last = now;
      out.end_step();
    }
    all.push_back(out.take());
  }
  return all;
}

std::vector<StageInstructions> deepspeed_inference(std::int32_t stages, std::int32_t micro_batches) {
  std::vector<StageInstructions> all;
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    StageWriter out(micro_batches, 2);
    const bool has_previous = stage > 0;
    const bool has_next = stage + 1 < stages;
    for (std::int32_t step = 0; step < micro_batches + stages - 1; ++step) {
      const std::int32_t now = step - stage;
      // Two buffers take turns, for all stages of one parity in the same rhythm.
      const std::int32_t receive_buffer = (step + stage) % 2;
      const std::int32_t send_buffer = 1 - receive_buffer;
      const bool receives = has_previous && out.valid(now);
      const bool sends = has_next && out.valid(now - 1);
      if ((!has_previous || !has_next) && out.valid(now))
        out.add_in(Name::kLoadMicroBatch, receive_buffer, now);
      // Neighbours take opposite orders, so that a blocking send always meets its receive.
      const bool even = stage % 2 == 0;
      if (receives && !even) out.add_in(Name::kRecvActivation, receive_buffer, now);
      if (sends) out.add_in(Name::kSendActivation, send_buffer, now - 1);
      if (receives && even) out.add_in(Name::kRecvActivation, receive_buffer, now);
      if (out.valid(now)) out.add_in(Name::kForwardPass, receive_buffer, now);
      out.end_step();
    }
    all.push_back(out.take());
  }
  return all;
}

Timeline deepspeed_timeline(const std::vector<StageInstructions>& stages, bool first_iteration) {
  Timeline timeline;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const auto stage = static_cast<std::int32_t>(s);
    RankTimeline& out = timeline.ranks.emplace_back();
    bool shapes_sent = !first_iteration;
    bool shapes_received = !first_iteration;
    const auto message = [&](bool send, std::int32_t peer, Carries carries, std::int32_t micro_batch) {
      const Message one{.send = send, .peer = peer, .payload = {carries, 0, micro_batch}};
      out.issue(StepKind::kBlocking, 0, {&one, 1});
    };
    for (const Instruction& instruction : stages[s].instructions) {
      const std::int32_t mb = instruction.micro_batch;
      switch (instruction.name) {
        case Name::kLoadMicroBatch:
          break;
        case Name::kForwardPass:
          out.compute(StepKind::kForward, 0, mb);
          break;
        case Name::kBackwardPass:
          out.compute(StepKind::kBackward, 0, mb);
          break;
        case Name::kSendActivation:
          if (!shapes_sent) message(true, stage + 1, Carries::kShape, 0);
          shapes_sent = true;
          message(true, stage + 1, Carries::kActivation, mb);
          break;
        case Name::kRecvActivation:
          if (!shapes_received) message(false, stage - 1, Carries::kShape, 0);
          shapes_received = true;
          message(false, stage - 1, Carries::kActivation, mb);
          break;
        case Name::kSendGrad:
          message(true, stage - 1, Carries::kGradient, mb);
          break;
        case Name::kRecvGrad:
          message(false, stage + 1, Carries::kGradient, mb);
          break;
        case Name::kReduceTiedGrads:
          out.mark(Mark::kReduceTiedGrads);
          break;
        case Name::kReduceGrads:
          out.mark(Mark::kReduceGrads);
          break;
        case Name::kOptimizerStep:
          out.mark(Mark::kOptimizerStep);
          break;
      }
    }
  }
  return timeline;
}

}  // namespace lockstep::plan
