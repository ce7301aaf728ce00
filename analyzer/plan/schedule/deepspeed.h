// The instruction schedules of DeepSpeed's pipeline engine (deepspeed/runtime/pipe/schedule.py): training and
// inference, in the two versions that are in use.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/schedule/timeline.h"

namespace lockstep::plan {

/// kOld: activations go before gradients in every step, and a stage holds one buffer more (85ce85dd). kNew:
/// what was computed last step is sent or received first (38327e07, 0.16 and later).
enum class DeepSpeedVersion : std::uint8_t { kOld, kNew };

struct Instruction {
  enum class Name : std::uint8_t {
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
  Name name = Name::kLoadMicroBatch;
  std::int32_t buffer = -1;       ///< -1: it works on none
  std::int32_t micro_batch = -1;  ///< which one the buffer holds then
};
std::string_view instruction_name(Instruction::Name name);
bool takes_buffer(Instruction::Name name);

struct StageInstructions {
  std::int32_t buffers = 0;  ///< num_pipe_buffers()
  std::vector<Instruction> instructions{};
  std::vector<std::uint32_t> step_ends{};  ///< step k is instructions [step_ends[k-1], step_ends[k])
};

/// `[stage]`. Preconditions: stages > 0, micro_batches > 0 (checked by schedule_query).
std::vector<StageInstructions> deepspeed_train(std::int32_t stages, std::int32_t micro_batches,
                                               DeepSpeedVersion version);
/// The same in both versions.
std::vector<StageInstructions> deepspeed_inference(std::int32_t stages, std::int32_t micro_batches);

/// As PipelineEngine executes it: every message is a blocking dist.send or dist.recv. In the first iteration
/// each stage sends the shapes of its activations once, before the first of them (_send_tensor_meta).
Timeline deepspeed_timeline(const std::vector<StageInstructions>& stages, bool first_iteration);

}  // namespace lockstep::plan
