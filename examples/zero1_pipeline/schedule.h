// What a stage does in one batch, instruction by instruction: one forward, one backward (1F1B), as DeepSpeed
// orders it.
#pragma once

#include <vector>

namespace zero1 {

enum class Instruction {
  kLoadMicroBatch,
  kForwardPass,
  kBackwardPass,
  kSendActivation,
  kRecvActivation,
  kSendGrad,
  kRecvGrad,
  kReduceTiedGrads,
  kReduceGrads,
  kOptimizerStep,
};

const char* name_of(Instruction instruction);

struct ScheduledInstruction {
  Instruction instruction = Instruction::kForwardPass;
  int micro_batch = -1;  ///< -1 = belongs to none
  int buffer = -1;       ///< pipe buffer, reused cyclically
  bool operator==(const ScheduledInstruction&) const = default;
};

/// Micro-batches that a stage holds at once: as many as may be under way between it and the last stage.
int pipe_buffers(int micro_batches, int stages, int stage);

/// Each step may be followed by a barrier of all stages. Within a step, a stage first exchanges what the
/// steps before produced, receiving or sending first by its parity so that blocking messages meet, and then
/// computes.
std::vector<std::vector<ScheduledInstruction>> train_schedule(int micro_batches, int stages, int stage);

}  // namespace zero1
