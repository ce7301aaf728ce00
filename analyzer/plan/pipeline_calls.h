// What a rank of a plan does in its schedule: messages with the tensors that the layers hand on, and the framework's step
// at marks and computations.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "plan/rank_calls.h"
#include "plan/schedule/lower_to_job.h"
#include "plan/schedule/timeline.h"
#include "plan/step.h"

namespace lockstep::plan {

class PipelineCalls {
 public:
  PipelineCalls(const Plan& plan, const Parts& parts, const Timeline& timeline, RankCalls& calls);
  PipelineCalls(const PipelineCalls&) = delete;  // its lowering asks it for tensors
  PipelineCalls& operator=(const PipelineCalls&) = delete;

  /// All that the rank at which `calls` stands does in the schedule.
  void run(const RankState& state, StepProgram& step);

 private:
  /// What a part of the layers hands on to the next.
  struct Boundary {
    std::vector<MessageTensor> activations{};
    std::vector<MessageTensor> gradients{};
    std::vector<MessageTensor> shapes{};  ///< the handshake before it
  };
  Boundary boundary_of(const std::vector<TensorShape>& outputs) const;
  std::vector<MessageTensor> shape_messages(const std::vector<TensorShape>& outputs) const;
  std::span<const MessageTensor> tensors(std::int32_t rank, const Message& message) const;

  const Plan& plan_;
  const Timeline& timeline_;
  RankCalls& calls_;
  std::vector<Boundary> boundaries_{};  ///< by part
  Boundary no_boundary_{};              ///< of a part that there is not
  MessageTensor unknown_{};             ///< a tensor that the plan does not give
  std::vector<MessageTensor> token_{};
  std::vector<MessageTensor> object_size_{}, object_{};  ///< torch: shapes go as objects
  std::unique_ptr<ScheduleLowering> lowering_{};
};

}  // namespace lockstep::plan
