// Runs the schedule of one stage: forward and backward of its micro-batches, messages to its neighbours, and
// at the end of the batch the reductions and the optimizer step.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "corpus.h"
#include "pipeline_calls.h"
#include "pipeline_module.h"
#include "schedule.h"
#include "zero1_optimizer.h"

namespace zero1 {

struct StepResult {
  double loss = 0;       ///< mean over the global batch
  double grad_norm = 0;  ///< before clipping; NaN if the step was skipped
  double loss_scale = 1;
  bool skipped = false;  ///< a gradient overflowed somewhere, so no rank updated
};

template <class P>
class PipelineEngine {
 public:
  using Real = typename P::Real;

  PipelineEngine(const Config& config, const Parts& parts, const Groups& ranks, const Corpus& corpus)
      : config_(config),
        ranks_(ranks),
        corpus_(corpus),
        module_(layer_specs(config.model), parts, config.model, static_cast<std::size_t>(ranks.place.stage)),
        optimizer_(config, module_.parameters(), ranks),
        schedule_(train_schedule(config.micro_batches, config.pipe, ranks.place.stage)),
        slots_(static_cast<std::size_t>(pipe_buffers(config.micro_batches, config.pipe, ranks.place.stage))) {
  }

  Zero1Optimizer<P>& optimizer() { return optimizer_; }
  const PipelineModule<P>& module() const { return module_; }

  StepResult train_batch(int step) {
    step_ = step;
    loss_ = 0;
    StepResult result;
    result.loss_scale = optimizer_.loss_scale();
    for (const auto& instructions : schedule_) {
      for (const ScheduledInstruction& scheduled : instructions) {
        if (scheduled.instruction == Instruction::kOptimizerStep) {
          const auto outcome = optimizer_.step();
          result.skipped = outcome.overflow;
          result.grad_norm = outcome.grad_norm;
        } else {
          execute(scheduled);
        }
      }
    }
    result.loss = _aggregate_total_loss(ranks_, loss_ / config_.micro_batches);
    return result;
  }

 private:
  /// One pipe buffer: a micro-batch between its forward and its backward, with what is to be sent next.
  struct Slot {
    MicroBatch batch;
    Tape<P> tape;
    Array<Real> input, output, grad;  ///< `grad`: of the output before backward, of the input after it
  };

  static constexpr DType kWire = DTypeOf<Real>::value;

  std::size_t activation_size() const {
    return static_cast<std::size_t>(config_.micro_batch_size) * config_.model.sequence * config_.model.hidden;
  }

  void execute(const ScheduledInstruction& scheduled) {
    if (scheduled.instruction == Instruction::kReduceTiedGrads) return reduce_tied_grads();
    if (scheduled.instruction == Instruction::kReduceGrads) return optimizer_.reduce_gradients();
    Slot& slot = slots_[static_cast<std::size_t>(scheduled.buffer)];
    switch (scheduled.instruction) {
      case Instruction::kLoadMicroBatch:
        slot.batch = corpus_.micro_batch(config_, step_, ranks_.place.replica, scheduled.micro_batch);
        break;
      case Instruction::kForwardPass:
        forward_pass(slot);
        break;
      case Instruction::kBackwardPass:
        backward_pass(slot);
        break;
      case Instruction::kSendActivation:
        _exec_send_activations(ranks_, slot.output.data(), slot.output.size(), kWire);
        break;
      case Instruction::kRecvActivation:
        slot.input = Array<Real>(activation_size());
        _exec_recv_activations(ranks_, slot.input.data(), slot.input.size(), kWire);
        break;
      case Instruction::kSendGrad:
        _exec_send_grads(ranks_, slot.grad.data(), slot.grad.size(), kWire);
        break;
      case Instruction::kRecvGrad:
        slot.grad = Array<Real>(activation_size());
        _exec_recv_grads(ranks_, slot.grad.data(), slot.grad.size(), kWire);
        break;
      case Instruction::kReduceTiedGrads:
      case Instruction::kReduceGrads:
      case Instruction::kOptimizerStep:
        break;
    }
  }

  void forward_pass(Slot& slot) {
    slot.tape.batch = &slot.batch;
    slot.tape.loss_factor = optimizer_.loss_scale() / config_.micro_batches;
    slot.output = module_.forward(std::move(slot.input), slot.tape);
    if (!ranks_.is_last()) return;
    slot.grad = cross_entropy(slot.output, slot.tape);
    loss_ += slot.tape.loss;
  }

  void backward_pass(Slot& slot) {
    slot.grad = module_.backward(std::move(slot.grad), slot.tape);
    if (config_.nan_step == step_ && config_.nan_rank == ranks_.world.rank())
      module_.parameters().front()->grad[0] =
          static_cast<typename P::Param>(std::numeric_limits<Real>::quiet_NaN());
  }

  void reduce_tied_grads() {
    for (const Parameter<P>* parameter : module_.tied_parameters())
      allreduce_tied_weight_gradients(ranks_, parameter->grad, parameter->size(),
                                      DTypeOf<typename P::Param>::value);
  }

  Config config_;
  const Groups& ranks_;
  const Corpus& corpus_;
  PipelineModule<P> module_;
  Zero1Optimizer<P> optimizer_;
  std::vector<std::vector<ScheduledInstruction>> schedule_;
  std::vector<Slot> slots_;
  int step_ = 0;
  double loss_ = 0;
};

}  // namespace zero1
