// DeepSpeed's schedules as JSON.
#include "plan/schedule/deepspeed.h"
#include "plan/schedule/query_parts.h"

namespace lockstep::plan {

Result<ScheduleJson> deepspeed_json(const ScheduleQuery& query) {
  static constexpr std::array<Named<bool>, 4> kNames = {
      {{"train", true}, {"inference", false}, {"TrainSchedule", true}, {"InferenceSchedule", false}}};
  const Result<bool> train = find_named(query.name, kNames);
  if (!train) return train.error();
  if (query.virtual_stages.value_or(1) != 1) return bad_flag("virtual", "DeepSpeed has one stage a rank");
  if (*train && query.forward_only) return bad_flag("forward-only", "this is --name inference");
  if (const auto error = check_sizes(query, 1)) return *error;
  const auto version = query.old_version ? DeepSpeedVersion::kOld : DeepSpeedVersion::kNew;
  const auto stages = *train ? deepspeed_train(narrow(query.stages), narrow(query.micro_batches), version)
                             : deepspeed_inference(narrow(query.stages), narrow(query.micro_batches));
  ScheduleJson per_stage = ScheduleJson::array();
  for (std::size_t s = 0; s < stages.size(); ++s) {
    ScheduleJson steps = ScheduleJson::array();
    std::size_t at = 0;
    for (const std::uint32_t end : stages[s].step_ends) {
      ScheduleJson step = ScheduleJson::array();
      for (; at < end; ++at) {
        const Instruction& instruction = stages[s].instructions[at];
        ScheduleJson one = ScheduleJson::array({instruction_name(instruction.name)});
        if (takes_buffer(instruction.name)) one.push_back(instruction.buffer);
        step.push_back(std::move(one));
      }
      steps.push_back(std::move(step));
    }
    per_stage.push_back({{"stage", s}, {"num_pipe_buffers", stages[s].buffers}, {"steps", std::move(steps)}});
  }
  return ScheduleJson{
      {"micro_batches", query.micro_batches}, {"stages", query.stages}, {"per_stage", std::move(per_stage)}};
}

}  // namespace lockstep::plan
