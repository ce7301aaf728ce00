// What a framework does in an iteration beside computing and passing tensors along: gradient reductions and
// the optimizer step.
#pragma once

#include <memory>

#include "plan/expansion.h"
#include "plan/rank_calls.h"
#include "plan/schedule/timeline.h"

namespace lockstep::plan {

/// What a step knows of the rank whose calls it makes.
struct RankState {
  const Stage& stage;
  const RankSettings& settings;
  std::int64_t stage_index = 0;
};

/// One implementation a framework. `calls` stands at the rank that `state` describes.
class StepProgram {
 public:
  virtual ~StepProgram() = default;
  /// Before the schedule.
  virtual void start(const RankState&) {}
  /// At a mark of the schedule. `chunk` is an index into the stage's layers, for marks that concern one.
  virtual void at(Mark mark, const RankState& state, std::size_t chunk) = 0;
  /// Where a schedule without marks computes: before the forward and after the backward pass of a
  /// micro-batch. `last`: of the chunk in this iteration, where no mark says when gradients are reduced.
  virtual void forward(const RankState&, std::size_t /*chunk*/) {}
  virtual void backward(const RankState&, std::size_t /*chunk*/, bool /*last*/) {}
  /// After the schedule.
  virtual void finish(const RankState& state) = 0;
};

std::unique_ptr<StepProgram> deepspeed_step(const Plan& plan, Iteration iteration, RankCalls& calls);
std::unique_ptr<StepProgram> megatron_step(const Plan& plan, Iteration iteration, RankCalls& calls);
std::unique_ptr<StepProgram> torch_step(const Plan& plan, Iteration iteration, RankCalls& calls);

}  // namespace lockstep::plan
