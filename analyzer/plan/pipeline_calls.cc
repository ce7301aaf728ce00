// Messages of a schedule as calls: which communicator, how many tensors, which are issued together.
#include "plan/pipeline_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/schedule/deepspeed.h"
#include "plan/schedule/megatron.h"
#include "plan/schedule/torch_lower.h"
#include "plan/schedule/torch_orders.h"
#include "plan/schedule/torch_runtime.h"
#include "plan/versions.h"

namespace lockstep::plan {
namespace {

bool is_floating(const std::string& datatype) {
  return datatype.empty() || datatype[0] == 'f' || datatype[0] == 'b';
}

/// Without a pipeline: the micro-batches one after the other.
Timeline lone_timeline(std::int64_t micro_batches) {
  Timeline timeline;
  RankTimeline& rank = timeline.ranks.emplace_back();
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(micro_batches); ++i) {
    rank.compute(StepKind::kForward, 0, i);
    rank.compute(StepKind::kBackward, 0, i);
  }
  return timeline;
}

Error unknown_schedule(const Plan& plan, std::string_view known) {
  return {ErrorCode::kMalformed, fmt::format("$.schedule.name: '{}' is none of {}'s: {}", plan.schedule.name,
                                             framework_name(plan.framework), known)};
}

Result<Timeline> megatron_plan_timeline(const Plan& plan) {
  const SchedulePlan& schedule = plan.schedule;
  MegatronQuery query;
  if (schedule.name == "none")
    query.schedule = MegatronSchedule::kNoPipelining;
  else if (schedule.name == "interleaved")
    query.schedule = MegatronSchedule::kInterleaved;
  else if (schedule.name != "1f1b")
    return unknown_schedule(plan, "none, 1f1b, interleaved");
  query.stages = static_cast<std::int32_t>(plan.topology.pipe);
  query.chunks = static_cast<std::int32_t>(schedule.chunks);
  query.micro_batches = static_cast<std::int32_t>(schedule.micro_batches);
  query.options.batch_p2p_comm = schedule.batch_p2p;
  query.options.overlap_p2p_comm = schedule.overlap_p2p;
  query.options.overlap_p2p_comm_warmup_flush = schedule.warmup_flush;
  query.options.variable_seq_lengths = schedule.variable_shapes;
  for (const std::int64_t size : schedule.group_sizes)
    query.options.group_sizes.push_back(static_cast<std::int32_t>(size));
  if (const auto refusal = megatron_rejection(query))
    return Error{ErrorCode::kMalformed, fmt::format("$.schedule: {}", *refusal)};
  return megatron_timeline(query);
}

Result<Timeline> torch_plan_timeline(const Plan& plan) {
  const std::string& name = plan.schedule.name;
  const auto ranks = static_cast<std::int32_t>(plan.topology.pipe);
  const auto micro_batches = static_cast<std::int32_t>(plan.schedule.micro_batches);
  if (name == "none") return lone_timeline(micro_batches);
  if (name == "gpipe" || name == "1f1b")
    return torch_runtime_timeline(
        name == "gpipe" ? TorchRuntimeSchedule::kGPipe : TorchRuntimeSchedule::k1F1B, ranks, micro_batches,
        false);
  TorchQuery query{.ranks = ranks,
                   .stages_per_rank = static_cast<std::int32_t>(plan.schedule.chunks),
                   .micro_batches = micro_batches};
  if (name == "looped_bfs")
    query.schedule = TorchSchedule::kLoopedBfs;
  else if (name == "interleaved")
    query.schedule = TorchSchedule::kInterleaved1F1B;
  else if (name == "interleaved_zero_bubble")
    query.schedule = TorchSchedule::kInterleavedZeroBubble;
  else if (name == "zbv")
    query.schedule = TorchSchedule::kZbv;
  else if (name == "dualpipev")
    query.schedule = TorchSchedule::kDualPipeV;
  else
    return unknown_schedule(
        plan, "none, gpipe, 1f1b, looped_bfs, interleaved, interleaved_zero_bubble, zbv, dualpipev");
  if (const auto refusal = torch_rejection(query))
    return Error{ErrorCode::kMalformed, fmt::format("$.schedule: {}", *refusal)};
  const auto lowered = lower_torch_order(torch_order(query), query.stages(), micro_batches);
  if (!lowered) return Error{ErrorCode::kMalformed, fmt::format("$.schedule: {}", lowered.error().message)};
  return torch_timeline(lowered->compute_comms, lowered->stage_ranks);
}

}  // namespace

Result<Timeline> plan_timeline(const Plan& plan, Iteration iteration) {
  const SchedulePlan& schedule = plan.schedule;
  if (schedule.name == "none" && plan.topology.pipe > 1)
    return Error{
        ErrorCode::kMalformed,
        fmt::format("$.schedule.name: 'none' contradicts $.topology.pipe, which is {}", plan.topology.pipe)};
  switch (plan.framework) {
    case Framework::kDeepSpeed:
      if (schedule.chunks != 1)
        return Error{ErrorCode::kMalformed, "$.schedule.virtual_stages: DeepSpeed has none"};
      if (schedule.name == "none") return lone_timeline(schedule.micro_batches);
      if (schedule.name != "1f1b") return unknown_schedule(plan, "none, 1f1b");
      return deepspeed_timeline(
          deepspeed_train(static_cast<std::int32_t>(plan.topology.pipe),
                          static_cast<std::int32_t>(schedule.micro_batches),
                          schedule.new_version ? DeepSpeedVersion::kNew : DeepSpeedVersion::kOld),
          iteration == Iteration::kFirst);
    case Framework::kMegatron:
      return megatron_plan_timeline(plan);
    case Framework::kTorch:
      return torch_plan_timeline(plan);
  }
  return unknown_schedule(plan, "");
}

PipelineCalls::PipelineCalls(const Plan& plan, const Parts& parts, const Timeline& timeline, RankCalls& calls)
    : plan_(plan), timeline_(timeline), calls_(calls), unknown_(calls.symbol("activation")) {
  for (std::size_t part = 0; part + 1 < parts.size(); ++part)
    boundaries_.push_back(boundary_tensors(plan, parts, part));
  constexpr Function kSenders[] = {{"pipe/p2p.py", "send_or_recv"},
                                   {"pipeline_parallel/p2p_communication.py", "_communicate"},
                                   {"distributed/pipelining/schedules.py", "_batch_p2p"}};
  message_site_ = calls.site({kSenders[static_cast<std::size_t>(plan.framework)]}, {});
}

// DeepSpeed's old versions send the shapes in several messages: kind, number of dimensions, dimensions of
// each tensor.
std::vector<PipelineCalls::Tensor> PipelineCalls::shape_messages(
    const std::vector<TensorShape>& outputs) const {
  if (plan_.framework != Framework::kDeepSpeed) return {{Count::of(3), "i64"}};
  if (deepspeed_behaviour(plan_.version).one_meta_message) return {{Count::of(256), "i32"}};
  std::vector<Tensor> messages{{Count::of(1), "i64"}};
  if (outputs.size() > 1) messages.push_back({Count::of(1), "i64"});  // how many
  for (const TensorShape& output : outputs) {
    if (outputs.size() > 1) messages.push_back({Count::of(1), "i64"});  // datatype
    messages.push_back({Count::of(1), "i64"});
    messages.push_back({Count::of(output.sizes.size()), "i64"});
  }
  return messages;
}

std::vector<PipelineCalls::Tensor> PipelineCalls::tensors(const Message& message, std::int32_t me) const {
  const std::int32_t stages = timeline_.size();
  const std::int32_t sender = message.send ? me : message.peer;
  const std::int32_t part = stage_of(timeline_.placement, stages, sender, message.payload.chunk);
  const std::int32_t boundary = message.payload.carries == Carries::kGradient ? part - 1 : part;
  const std::vector<TensorShape> kNone;
  const bool known = boundary >= 0 && boundary < static_cast<std::int32_t>(boundaries_.size());
  const std::vector<TensorShape>& outputs = known ? boundaries_[static_cast<std::size_t>(boundary)] : kNone;
  if (message.payload.carries == Carries::kShape) return shape_messages(outputs);
  if (message.payload.carries == Carries::kToken) return {{Count::of(1), "f32"}};
  std::vector<Tensor> tensors;
  for (const TensorShape& output : outputs) {
    if (message.payload.carries == Carries::kGradient && !is_floating(output.datatype))
      continue;  // a mask has none
    tensors.push_back(
        {Count::of(output.elements()), output.datatype.empty() ? plan_.datatype : output.datatype});
  }
  if (outputs.empty()) tensors.push_back({unknown_, plan_.datatype});
  return tensors;
}

void PipelineCalls::issue(const RankTimeline& timeline, const Step& step, std::int32_t me) {
  const bool async = step.kind == StepKind::kAsync || step.kind == StepKind::kBatch;
  const std::uint32_t launch = step.kind == StepKind::kBatch ? calls_.next_launch() : 0;
  const std::string_view pipe_family = plan_.framework == Framework::kDeepSpeed ? "pipe" : "pp";
  // DeepSpeed sends between job ranks, on the group of all.
  const std::string_view own_family = plan_.framework == Framework::kDeepSpeed ? "world" : "pp";
  const std::string handle = async ? fmt::format("p{}", step.id) : std::string();
  for (const Message& message : timeline.messages_of(step)) {
    const std::string payload = payload_text(message.payload);
    const OpKind kind = async ? (message.send ? OpKind::kIsend : OpKind::kIrecv)
                              : (message.send ? OpKind::kSend : OpKind::kRecv);
    for (const Tensor& tensor : tensors(message, me))
      calls_.message(message_site_, {.kind = kind,
                                     .family = message.world ? "world" : own_family,
                                     .peers = pipe_family,
                                     .peer = message.peer,
                                     .count = tensor.count,
                                     .datatype = tensor.datatype,
                                     .payload = payload,
                                     .handle = handle,
                                     .launch = launch});
  }
}

void PipelineCalls::run(const RankState& state, StepProgram& step_program) {
  const auto me = static_cast<std::int32_t>(state.stage_index);
  const RankTimeline& timeline = timeline_.ranks[static_cast<std::size_t>(me)];
  const auto last_micro_batch = static_cast<std::int32_t>(plan_.schedule.micro_batches) - 1;
  for (const Step& step : timeline.steps) {
    switch (step.kind) {
      case StepKind::kForward:
        step_program.forward(state, step.chunk);
        break;
      case StepKind::kBackward:
      case StepKind::kBackwardWeight:
        step_program.backward(state, step.chunk, step.micro_batch == last_micro_batch);
        break;
      case StepKind::kBackwardInput:
        break;
      case StepKind::kBatch:
      case StepKind::kAsync:
      case StepKind::kBlocking:
        issue(timeline, step, me);
        break;
      case StepKind::kWait:
        calls_.wait(message_site_, fmt::format("p{}", step.id));
        break;
      case StepKind::kMark:
        step_program.at(step.mark, state);
        break;
    }
  }
}

}  // namespace lockstep::plan
