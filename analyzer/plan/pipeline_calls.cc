// Messages of a schedule as calls: which communicator, how many tensors, which are issued together.
#include "plan/pipeline_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plan/schedule/deepspeed.h"
#include "plan/schedule/megatron.h"
#include "plan/schedule/skip_connections.h"
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

/// Of torch's timelines: connections over stages, and what the first iteration exchanges before all else.
Timeline complete_torch_timeline(const Plan& plan, const Parts& parts, Iteration iteration, Timeline timeline,
                                 const std::vector<std::int32_t>& stage_ranks) {
  const auto skips = skip_connections(plan, parts);
  if (!skips.empty()) add_skip_messages(timeline, skips, plan.schedule.name == "gpipe");
  if (iteration != Iteration::kFirst) return timeline;
  std::vector<bool> knows_input(stage_ranks.size(), false);
  for (const std::int64_t stage : plan.schedule.input_args_stages) knows_input[static_cast<std::size_t>(stage)] = true;
  prepend_torch_handshake(timeline, stage_ranks, knows_input);
  return timeline;
}

Result<Timeline> torch_plan_timeline(const Plan& plan, const Parts& parts, Iteration iteration) {
  const std::string& name = plan.schedule.name;
  const auto ranks = static_cast<std::int32_t>(plan.topology.pipe);
  const auto micro_batches = static_cast<std::int32_t>(plan.schedule.micro_batches);
  if (name == "none") return lone_timeline(micro_batches);
  if (name == "gpipe" || name == "1f1b") {
    const auto schedule = name == "gpipe" ? TorchRuntimeSchedule::kGPipe : TorchRuntimeSchedule::k1F1B;
    std::vector<std::int32_t> stage_ranks(static_cast<std::size_t>(ranks));
    std::iota(stage_ranks.begin(), stage_ranks.end(), 0);
    return complete_torch_timeline(plan, parts, iteration,
                                   torch_runtime_timeline(schedule, ranks, micro_batches, false), stage_ranks);
  }
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
  const auto lowered = lower_torch_order(torch_order(query), query.stages(), micro_batches,
                                         torch_names_waits(plan.version) ? TorchWaits::kNamed : TorchWaits::kAtTheEnd);
  if (!lowered) return Error{ErrorCode::kMalformed, fmt::format("$.schedule: {}", lowered.error().message)};
  return complete_torch_timeline(plan, parts, iteration, torch_timeline(lowered->compute_comms, lowered->stage_ranks),
                                 lowered->stage_ranks);
}

}  // namespace

Result<Timeline> plan_timeline(const Plan& plan, const Parts& parts, Iteration iteration) {
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
      return torch_plan_timeline(plan, parts, iteration);
  }
  return unknown_schedule(plan, "");
}

namespace {

ScheduleSource source_of(Framework framework) {
  switch (framework) {
    case Framework::kDeepSpeed:
      return ScheduleSource::kDeepSpeed;
    case Framework::kMegatron:
      return ScheduleSource::kMegatron;
    case Framework::kTorch:
      return ScheduleSource::kTorch;
  }
  return ScheduleSource::kMegatron;
}

}  // namespace

PipelineCalls::PipelineCalls(const Plan& plan, const Parts& parts, const Timeline& timeline, RankCalls& calls)
    : plan_(plan), timeline_(timeline), calls_(calls) {
  unknown_ = {calls.symbol("activation"), calls.datatype(plan.datatype)};
  object_size_ = {{Count::of(1), calls.datatype("i64")}};
  object_ = {{calls.symbol("object"), calls.datatype("u8")}};
  token_ = {{Count::of(1), calls.datatype("f32")}};
  for (std::size_t part = 0; part + 1 < parts.size(); ++part)
    boundaries_.push_back(boundary_of(boundary_tensors(plan, parts, part)));
  no_boundary_ = boundary_of({});
  constexpr Function kSenders[] = {{"pipe/p2p.py", "send_or_recv"},
                                   {"pipeline_parallel/p2p_communication.py", "_communicate"},
                                   {"distributed/pipelining/schedules.py", "_batch_p2p"}};
  LoweringOptions options{.source = source_of(plan.framework),
                          .site = calls.site({kSenders[static_cast<std::size_t>(plan.framework)]}, {})};
  options.tensors = [this](std::int32_t rank, const Message& message) { return tensors(rank, message); };
  lowering_ = std::make_unique<ScheduleLowering>(calls.builder(), timeline, options);
}

PipelineCalls::Boundary PipelineCalls::boundary_of(const std::vector<TensorShape>& outputs) const {
  Boundary boundary{.shapes = shape_messages(outputs)};
  for (const TensorShape& output : outputs) {
    const std::string& datatype = output.datatype.empty() ? plan_.datatype : output.datatype;
    const MessageTensor tensor{Count::of(output.elements()), calls_.datatype(datatype)};
    boundary.activations.push_back(tensor);
    if (is_floating(output.datatype)) boundary.gradients.push_back(tensor);  // a mask has none
  }
  if (outputs.empty()) boundary.activations = boundary.gradients = {unknown_};
  return boundary;
}

// DeepSpeed's old versions send the shapes in several messages: kind, number of dimensions, dimensions of
// each tensor.
std::vector<MessageTensor> PipelineCalls::shape_messages(
    const std::vector<TensorShape>& outputs) const {
  const DatatypeIndex integer = calls_.datatype("i64");
  if (plan_.framework != Framework::kDeepSpeed) return {{Count::of(3), integer}};
  if (deepspeed_behaviour(plan_.version).one_meta_message) return {{Count::of(256), calls_.datatype("i32")}};
  std::vector<MessageTensor> messages{{Count::of(1), integer}};
  if (outputs.size() > 1) messages.push_back({Count::of(1), integer});  // how many
  for (const TensorShape& output : outputs) {
    if (outputs.size() > 1) messages.push_back({Count::of(1), integer});  // datatype
    messages.push_back({Count::of(1), integer});
    messages.push_back({Count::of(output.sizes.size()), integer});
  }
  return messages;
}

std::span<const MessageTensor> PipelineCalls::tensors(std::int32_t rank, const Message& message) const {
  const std::int32_t sender = message.send ? rank : message.peer;
  const std::int32_t part = stage_of(timeline_.placement, timeline_.size(), sender, message.payload.chunk);
  const std::int32_t index = message.payload.carries == Carries::kGradient ? part - 1 : part;
  const bool known = index >= 0 && index < std::ssize(boundaries_);
  const Boundary& boundary = known ? boundaries_[static_cast<std::size_t>(index)] : no_boundary_;
  switch (message.payload.carries) {
    case Carries::kActivation:
      return boundary.activations;
    case Carries::kGradient:
      return boundary.gradients;
    case Carries::kShape:
      if (plan_.framework != Framework::kTorch) return boundary.shapes;
      return message.payload.micro_batch == 0 ? object_size_ : object_;
    case Carries::kToken:
      return token_;
  }
  return {};
}

void PipelineCalls::run(const RankState& state, StepProgram& step_program) {
  const auto me = static_cast<std::int32_t>(state.stage_index);
  const auto last_micro_batch = static_cast<std::int32_t>(plan_.schedule.micro_batches) - 1;
  PipelinePlace place;
  RankList ranks;
  const std::vector<Message>& messages = timeline_.ranks[static_cast<std::size_t>(me)].messages;
  if (!messages.empty()) {
    // DeepSpeed sends between job ranks, on the group of all.
    const bool on_world = plan_.framework == Framework::kDeepSpeed;
    ranks = calls_.partners(on_world ? "pipe" : "pp");
    if (on_world || std::ranges::any_of(messages, &Message::world)) place.world = calls_.communicator("world");
    place.pipeline = on_world ? place.world : calls_.communicator("pp");
    place.ranks = ranks;
  }
  lowering_->append(me, place, calls_.program(), [&](const Step& step, OperationTable&) {
    switch (step.kind) {
      case StepKind::kForward:
        return step_program.forward(state, step.chunk);
      case StepKind::kBackward:
      case StepKind::kBackwardWeight:
        return step_program.backward(state, step.chunk, step.micro_batch == last_micro_batch);
      case StepKind::kMark:
        return step_program.at(step.mark, state);
      case StepKind::kBackwardInput:
      case StepKind::kBatch:
      case StepKind::kAsync:
      case StepKind::kBlocking:
      case StepKind::kWait:
        return;
    }
  });
}

}  // namespace lockstep::plan
