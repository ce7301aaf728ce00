#include "schedule.h"

#include <algorithm>

namespace zero1 {

const char* name_of(Instruction instruction) {
  switch (instruction) {
    case Instruction::kLoadMicroBatch:
      return "LoadMicroBatch";
    case Instruction::kForwardPass:
      return "ForwardPass";
    case Instruction::kBackwardPass:
      return "BackwardPass";
    case Instruction::kSendActivation:
      return "SendActivation";
    case Instruction::kRecvActivation:
      return "RecvActivation";
    case Instruction::kSendGrad:
      return "SendGrad";
    case Instruction::kRecvGrad:
      return "RecvGrad";
    case Instruction::kReduceTiedGrads:
      return "ReduceTiedGrads";
    case Instruction::kReduceGrads:
      return "ReduceGrads";
    case Instruction::kOptimizerStep:
      return "OptimizerStep";
  }
  return "";
}

int pipe_buffers(int micro_batches, int stages, int stage) {
  return std::max(2, std::min(stages - stage + 1, micro_batches));
}

std::vector<std::vector<ScheduledInstruction>> train_schedule(int micro_batches, int stages, int stage) {
  const int buffers = pipe_buffers(micro_batches, stages, stage);
  const int steps = 2 * (micro_batches + stages - 1);
  const bool has_previous = stage > 0;
  const bool has_next = stage + 1 < stages;
  const auto is_valid = [&](int micro_batch) { return micro_batch >= 0 && micro_batch < micro_batches; };

  std::vector<std::vector<ScheduledInstruction>> schedule(static_cast<std::size_t>(steps));
  int previous = -1;  // micro-batch of the step before, whose result is now sent
  for (int step = 0; step < steps; ++step) {
    std::vector<ScheduledInstruction>& now = schedule[static_cast<std::size_t>(step)];
    const auto add = [&](Instruction what, int micro_batch) {
      now.push_back({what, micro_batch, micro_batch % buffers});
    };

    // Micro-batch m goes forward through stage s in step 2m + s, and back in step 2m + 2(stages - 1) - s + 1.
    const bool is_forward = (step - stage) % 2 == 0;
    const int ahead = is_forward ? step - stage : step + stage + 1 - 2 * stages;
    const int micro_batch = ahead < 0 ? -1 : ahead / 2;

    if (is_forward) {
      if (is_valid(micro_batch) && has_previous) add(Instruction::kRecvActivation, micro_batch);
      if (is_valid(previous) && has_previous) add(Instruction::kSendGrad, previous);
    } else {
      if (is_valid(previous) && has_next) add(Instruction::kSendActivation, previous);
      if (is_valid(micro_batch) && has_next) add(Instruction::kRecvGrad, micro_batch);
    }
    if (is_valid(micro_batch)) {
      // Tokens are wanted where they are embedded, targets where the loss is.
      if (is_forward && (!has_previous || !has_next)) add(Instruction::kLoadMicroBatch, micro_batch);
      add(is_forward ? Instruction::kForwardPass : Instruction::kBackwardPass, micro_batch);
    }
    previous = micro_batch;
  }
  for (const Instruction last :
       {Instruction::kReduceTiedGrads, Instruction::kReduceGrads, Instruction::kOptimizerStep})
    schedule.back().push_back({last});
  return schedule;
}

}  // namespace zero1
