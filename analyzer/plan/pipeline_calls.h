// From a schedule's timeline to calls: every message with its tensors, every mark to the step of the
// framework.
#pragma once

#include "plan/rank_calls.h"
#include "plan/schedule/timeline.h"
#include "plan/step.h"

namespace lockstep::plan {

/// The schedule of the plan for one iteration. Errors name the field, or are the framework's own refusal.
Result<Timeline> plan_timeline(const Plan& plan, Iteration iteration);

class PipelineCalls {
 public:
  PipelineCalls(const Plan& plan, const Parts& parts, const Timeline& timeline, RankCalls& calls);

  /// All that the rank at which `calls` stands does in the schedule.
  void run(const RankState& state, StepProgram& step);

 private:
  struct Tensor {
    Count count{};
    std::string datatype{};
  };
  std::vector<Tensor> tensors(const Message& message, std::int32_t me) const;
  std::vector<Tensor> shape_messages(const std::vector<TensorShape>& outputs) const;
  void issue(const RankTimeline& timeline, const Step& step, std::int32_t me);

  const Plan& plan_;
  const Timeline& timeline_;
  RankCalls& calls_;
  std::vector<std::vector<TensorShape>> boundaries_{};  ///< by part: what it hands on
  Count unknown_{};                                     ///< elements of a tensor that the plan does not give
  SiteIndex message_site_{};
};

}  // namespace lockstep::plan
