// Which schedule a plan's name of one stands for, as a Timeline: each framework's own, and those of projects beside them.
#include "plan/plan_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "plan/schedule/deepspeed.h"
#include "plan/schedule/dualpipe.h"
#include "plan/schedule/megatron.h"
#include "plan/schedule/skip_connections.h"
#include "plan/schedule/torch_first_step.h"
#include "plan/schedule/torch_lower.h"
#include "plan/schedule/torch_orders.h"
#include "plan/schedule/torch_runtime.h"
#include "plan/schedule/zero_bubble.h"
#include "plan/versions.h"

namespace lockstep::plan {
namespace {

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

/// Of sail-sg's zero-bubble, a fork of Megatron; its own names have no prefix where Megatron has no such schedule.
constexpr std::array<std::pair<std::string_view, ZeroBubbleSchedule>, 7> kZeroBubbleNames = {{
    {"zb_1f1b", ZeroBubbleSchedule::k1F1B},
    {"zb", ZeroBubbleSchedule::kZb},
    {"zb_vpp", ZeroBubbleSchedule::kVpp},
    {"zbv", ZeroBubbleSchedule::kZbv},
    {"zbv_greedy_min", ZeroBubbleSchedule::kZbvGreedyMin},
    {"zbv_greedy_half", ZeroBubbleSchedule::kZbvGreedyHalf},
    {"v1f1b", ZeroBubbleSchedule::kV1F1B},
}};

std::optional<ZeroBubbleSchedule> zero_bubble_schedule(const Plan& plan) {
  if (plan.framework != Framework::kMegatron) return std::nullopt;
  const auto found = std::ranges::find(kZeroBubbleNames, plan.schedule.name,
                                       &std::pair<std::string_view, ZeroBubbleSchedule>::first);
  return found == kZeroBubbleNames.end() ? std::nullopt : std::optional(found->second);
}

std::optional<DualPipeKind> dualpipe_kind(const Plan& plan) {
  if (plan.framework != Framework::kTorch) return std::nullopt;
  if (plan.schedule.name == "dualpipe") return DualPipeKind::kBothWays;
  if (plan.schedule.name == "deepseek_dualpipev") return DualPipeKind::kVee;
  return std::nullopt;
}

Error chunks_refused(const Plan& plan, std::int64_t takes) {
  return {ErrorCode::kMalformed, fmt::format("$.schedule.virtual_stages: {} has {} on each rank, not {}",
                                             plan.schedule.name, takes, plan.schedule.chunks)};
}

Result<Timeline> zero_bubble_plan_timeline(const Plan& plan, ZeroBubbleSchedule schedule) {
  const std::int32_t takes = chunks_of(schedule);
  if (takes != 0 && plan.schedule.chunks != takes) return chunks_refused(plan, takes);
  if (takes == 0 && plan.schedule.chunks < 2)
    return Error{ErrorCode::kMalformed, "$.schedule.virtual_stages: zb_vpp has at least 2 on each rank"};
  // The greedy searches take the square of this in time.
  const bool greedy = schedule == ZeroBubbleSchedule::kZbvGreedyMin || schedule == ZeroBubbleSchedule::kZbvGreedyHalf;
  const std::int64_t most_passes = greedy ? 1 << 12 : 1 << 16;
  const std::int64_t passes = plan.topology.pipe * plan.schedule.chunks * plan.schedule.micro_batches;
  if (passes > most_passes)
    return Error{ErrorCode::kMalformed,
                 fmt::format("$.schedule.micro_batches: {} in {} stages of {} chunks are {} passes; at most {} are "
                             "searched for an order",
                             plan.schedule.micro_batches, plan.topology.pipe, plan.schedule.chunks, passes, most_passes)};
  const ZeroBubbleQuery query{.schedule = schedule,
                              .stages = static_cast<std::int32_t>(plan.topology.pipe),
                              .micro_batches = static_cast<std::int32_t>(plan.schedule.micro_batches),
                              .chunks = static_cast<std::int32_t>(plan.schedule.chunks)};
  const auto order = zero_bubble_order(query);
  if (!order) return Error{ErrorCode::kMalformed, fmt::format("$.schedule: {}", order.error().message)};
  const auto with_messages = zero_bubble_with_messages(query, *order);
  if (!with_messages)
    return Error{ErrorCode::kMalformed, fmt::format("$.schedule: {}", with_messages.error().message)};
  return zero_bubble_timeline(*with_messages);
}

Result<Timeline> dualpipe_plan_timeline(const Plan& plan, DualPipeKind kind) {
  // Both ways each rank holds two stages of one and the same cut of the layers.
  const std::int64_t takes = kind == DualPipeKind::kVee ? 2 : 1;
  if (plan.schedule.chunks != takes) return chunks_refused(plan, takes);
  const auto ranks = static_cast<std::int32_t>(plan.topology.pipe);
  const auto micro_batches = static_cast<std::int32_t>(plan.schedule.micro_batches);
  if (const auto refusal = dualpipe_rejection(kind, ranks, micro_batches))
    return Error{ErrorCode::kMalformed, fmt::format("$.schedule: {}", *refusal)};
  return dualpipe_timeline(kind, ranks, micro_batches);
}

/// Shapes are sent without anybody waiting until they are received.
void buffer_shapes(Timeline& timeline) {
  for (RankTimeline& rank : timeline.ranks) {
    RankTimeline out;
    std::uint32_t unawaited = 0;
    for (const Step& step : rank.steps) unawaited = std::max(unawaited, step.id + 1);
    std::vector<bool> awaited(unawaited + 1, true);
    std::vector<Message> rest;
    for (const Step& step : rank.steps) {
      if (step.kind == StepKind::kWait && !awaited[step.id]) continue;
      rest.clear();
      for (const Message& message : rank.messages_of(step)) {
        if (message.send && message.payload.carries == Carries::kShape)
          out.issue(StepKind::kAsync, unawaited, {&message, 1});
        else
          rest.push_back(message);
      }
      if (step.messages == 0)
        out.steps.push_back(step);
      else if (awaited[step.id] = !rest.empty(); awaited[step.id])
        out.issue(step.kind, step.id, rest);
    }
    rank = std::move(out);
  }
}

Result<Timeline> megatron_plan_timeline(const Plan& plan) {
  const SchedulePlan& schedule = plan.schedule;
  if (const auto zero_bubble = zero_bubble_schedule(plan)) return zero_bubble_plan_timeline(plan, *zero_bubble);
  MegatronQuery query;
  if (schedule.name == "none")
    query.schedule = MegatronSchedule::kNoPipelining;
  else if (schedule.name == "interleaved")
    query.schedule = MegatronSchedule::kInterleaved;
  else if (schedule.name != "1f1b")
    return unknown_schedule(plan, "none, 1f1b, interleaved, and zero-bubble's zb_1f1b, zb, zb_vpp, zbv, zbv_greedy_min, "
                                  "zbv_greedy_half, v1f1b");
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
  Timeline timeline = megatron_timeline(query);
  if (schedule.shapes_are_buffered) buffer_shapes(timeline);
  return timeline;
}

/// Of torch's timelines: connections over stages, and what the first iteration exchanges before all else.
Result<Timeline> complete_torch_timeline(const Plan& plan, const Parts& parts, Iteration iteration, Timeline timeline,
                                         const std::vector<std::int32_t>& stage_ranks) {
  const auto skips = skip_connections(plan, parts);
  // Each is looked at for each message of a stage, and is one message of a batch.
  constexpr std::int64_t kMostSkips = 4096, kMostSkipMessages = 1 << 25;
  const std::int64_t messages = std::ssize(skips) * plan.topology.pipe * plan.schedule.micro_batches;
  if (std::ssize(skips) > kMostSkips || messages > kMostSkipMessages)
    return Error{ErrorCode::kMalformed,
                 fmt::format("$.layers: {} connections over a stage (skips_to), in {} stages with {} micro-batches, are more than "
                             "are expanded",
                             skips.size(), plan.topology.pipe, plan.schedule.micro_batches)};
  if (!skips.empty()) add_skip_messages(timeline, skips, plan.schedule.name == "gpipe");
  if (torch_agrees_on_shapes(plan.version)) unbatch_one_way(timeline);
  if (iteration != Iteration::kFirst) return timeline;
  std::vector<bool> knows_input(stage_ranks.size(), false);
  for (const std::int64_t stage : plan.schedule.input_args_stages) knows_input[static_cast<std::size_t>(stage)] = true;
  if (torch_agrees_on_shapes(plan.version))
    prepend_torch_agreement(timeline, stage_ranks, knows_input, plan.version);
  else
    prepend_torch_handshake(timeline, stage_ranks, knows_input);
  return timeline;
}

Result<Timeline> torch_plan_timeline(const Plan& plan, const Parts& parts, Iteration iteration) {
  const std::string& name = plan.schedule.name;
  const auto ranks = static_cast<std::int32_t>(plan.topology.pipe);
  const auto micro_batches = static_cast<std::int32_t>(plan.schedule.micro_batches);
  if (name == "none") return lone_timeline(micro_batches);
  if (const auto kind = dualpipe_kind(plan)) return dualpipe_plan_timeline(plan, *kind);
  if (name == "gpipe" || name == "1f1b") {
    const bool gpipe = name == "gpipe";
    const auto schedule = gpipe ? TorchRuntimeSchedule::kGPipe : TorchRuntimeSchedule::k1F1B;
    const TorchQuery query{.schedule = gpipe ? TorchSchedule::kGPipe : TorchSchedule::k1F1B,
                           .ranks = ranks,
                           .micro_batches = micro_batches,
                           .version = plan.version};
    if (const auto refusal = torch_rejection(query))
      return Error{ErrorCode::kMalformed, fmt::format("$.schedule: {}", *refusal)};
    std::vector<std::int32_t> stage_ranks(static_cast<std::size_t>(ranks));
    std::iota(stage_ranks.begin(), stage_ranks.end(), 0);
    return complete_torch_timeline(plan, parts, iteration,
                                   torch_runtime_timeline(schedule, ranks, micro_batches, false), stage_ranks);
  }
  TorchQuery query{.ranks = ranks,
                   .stages_per_rank = static_cast<std::int32_t>(plan.schedule.chunks),
                   .micro_batches = micro_batches,
                   .version = plan.version};
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
        plan, "none, gpipe, 1f1b, looped_bfs, interleaved, interleaved_zero_bubble, zbv, dualpipev, and DeepSeek's "
              "dualpipe, deepseek_dualpipev");
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
      if (schedule.name == "inference")
        return deepspeed_timeline(deepspeed_inference(static_cast<std::int32_t>(plan.topology.pipe),
                                                      static_cast<std::int32_t>(schedule.micro_batches)),
                                  iteration == Iteration::kFirst);
      if (schedule.name != "1f1b") return unknown_schedule(plan, "none, 1f1b, inference");
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

ScheduleSource schedule_source(const Plan& plan) {
  switch (plan.framework) {
    case Framework::kDeepSpeed:
      return ScheduleSource::kDeepSpeed;
    case Framework::kMegatron:
      return zero_bubble_schedule(plan) ? ScheduleSource::kZeroBubble : ScheduleSource::kMegatron;
    case Framework::kTorch:
      return dualpipe_kind(plan) ? ScheduleSource::kDualPipe : ScheduleSource::kTorch;
  }
  return ScheduleSource::kMegatron;
}

}  // namespace lockstep::plan
