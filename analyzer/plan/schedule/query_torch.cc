// torch pipelining's orders, and the loops that it runs, as JSON.
#include "plan/schedule/query_parts.h"
#include "plan/schedule/torch_lower.h"
#include "plan/schedule/torch_orders.h"
#include "plan/schedule/torch_runtime.h"
#include "plan/versions.h"

namespace lockstep::plan {
namespace {

ScheduleJson order_json(const TorchOrder& order) {
  ScheduleJson rows = ScheduleJson::object();
  for (std::size_t r = 0; r < order.size(); ++r) rows[std::to_string(r)] = torch_row_text(order[r]);
  return rows;
}

}  // namespace

Result<ScheduleJson> torch_json(const ScheduleQuery& query) {
  static constexpr std::array<Named<TorchSchedule>, 9> kNames = {{
      {"GPipe", TorchSchedule::kGPipe},
      {"1F1B(IR)", TorchSchedule::k1F1B},
      {"1F1B", TorchSchedule::k1F1B},
      {"LoopedBFS", TorchSchedule::kLoopedBfs},
      {"Interleaved1F1B", TorchSchedule::kInterleaved1F1B},
      {"InterleavedZeroBubble", TorchSchedule::kInterleavedZeroBubble},
      {"ZBVZeroBubble", TorchSchedule::kZbv},
      {"ZBV", TorchSchedule::kZbv},
      {"DualPipeV", TorchSchedule::kDualPipeV},
  }};
  TorchQuery torch{.ranks = 1, .version = query.torch_version};
  std::string label = query.name;
  bool single = false;
  if (query.csv_path.empty()) {
    const Result<TorchSchedule> schedule = find_named(query.name, kNames);
    if (!schedule) return schedule.error();
    torch.schedule = *schedule;
    label = torch_schedule_name(*schedule);
    single = *schedule == TorchSchedule::kGPipe || *schedule == TorchSchedule::k1F1B;
  }
  const bool vee = torch.schedule == TorchSchedule::kZbv || torch.schedule == TorchSchedule::kDualPipeV;
  const std::int64_t local = query.virtual_stages.value_or(single ? 1 : vee ? 2 : 1);
  if (single && local != 1) return bad_flag("virtual", fmt::format("{} has one stage a rank", label));
  if (query.forward_only) return bad_flag("forward-only", "torch's orders are those of training");
  if (const auto error = check_sizes(query, local)) return *error;
  torch.ranks = narrow(query.stages);
  torch.stages_per_rank = narrow(local);
  torch.micro_batches = narrow(query.micro_batches);

  ScheduleJson json{{"schedule", label},
                    {"pp", query.stages},
                    {"virtual", local},
                    {"num_stages", torch.stages()},
                    {"microbatches", query.micro_batches}};
  TorchOrder order;
  if (!query.csv_path.empty()) {
    auto parsed = parse_torch_csv(query.csv, query.csv_path,
                                  query.old_letters ? TorchLetters::kOld : TorchLetters::kNew);
    if (!parsed) return parsed.error();
    order = std::move(*parsed);
    if (static_cast<std::int64_t>(order.size()) != query.stages) {
      json["lower_error"] =
          fmt::format("AssertionError: Schedule has incorrect number of ranks - expected {}, actual {}",
                      query.stages, order.size());
      return json;
    }
  } else if (const auto rejection = torch_rejection(torch)) {
    json["error"] = *rejection;
    return json;
  } else {
    order = torch_order(torch);
  }
  json["compute_only"] = order_json(order);
  const Result<TorchLowered> lowered = lower_torch_order(
      order, torch.stages(), torch.micro_batches, torch_names_waits(query.torch_version) ? TorchWaits::kNamed : TorchWaits::kAtTheEnd);
  if (!lowered) {
    json["lower_error"] = lowered.error().message;
    return json;
  }
  json["stage_to_rank"] = lowered->stage_ranks;
  json["compute_comms"] = order_json(lowered->compute_comms);
  json["compute_sendrecv"] = order_json(lowered->compute_sendrecv);
  return json;
}

Result<ScheduleJson> torch_runtime_json(const ScheduleQuery& query) {
  static constexpr std::array<Named<TorchRuntimeSchedule>, 4> kNames = {
      {{"GPipe(runtime)", TorchRuntimeSchedule::kGPipe},
       {"1F1B(runtime)", TorchRuntimeSchedule::k1F1B},
       {"GPipe", TorchRuntimeSchedule::kGPipe},
       {"1F1B", TorchRuntimeSchedule::k1F1B}}};
  const Result<TorchRuntimeSchedule> schedule = find_named(query.name, kNames);
  if (!schedule) return schedule.error();
  if (query.virtual_stages.value_or(1) != 1)
    return bad_flag("virtual", "these schedules have one stage a rank");
  if (query.forward_only && *schedule == TorchRuntimeSchedule::k1F1B)
    return bad_flag("forward-only", "only GPipe runs forward alone");
  if (const auto error = check_sizes(query, 1)) return *error;
  const bool gpipe = *schedule == TorchRuntimeSchedule::kGPipe;
  const TorchQuery torch{.schedule = gpipe ? TorchSchedule::kGPipe : TorchSchedule::k1F1B,
                         .ranks = narrow(query.stages),
                         .micro_batches = narrow(query.micro_batches),
                         .version = query.torch_version};
  ScheduleJson json{{"schedule", gpipe ? "GPipe(runtime)" : "1F1B(runtime)"},
                    {"pp", query.stages},
                    {"microbatches", query.micro_batches}};
  if (const auto rejection = torch_rejection(torch)) {
    json["error"] = *rejection;
    return json;
  }
  const Timeline timeline = torch_runtime_timeline(*schedule, narrow(query.stages),
                                                   narrow(query.micro_batches), query.forward_only);
  ScheduleJson ranks = ScheduleJson::object();
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
    ScheduleJson events = ScheduleJson::array();
    const RankTimeline& rank = timeline.ranks[r];
    for (const Step& step : rank.steps) {
      if (step.kind == StepKind::kBatch) {
        ScheduleJson messages = ScheduleJson::array();
        for (const Message& message : rank.messages_of(step)) {
          messages.push_back(fmt::format("{}{} {} {}", message.send ? "send>" : "recv<", message.peer,
                                         message.payload.carries == Carries::kGradient ? "grad" : "act",
                                         message.payload.micro_batch));
        }
        events.push_back({{"batch", std::move(messages)}, {"id", step.id}});
      } else if (step.kind == StepKind::kWait) {
        events.push_back({{"wait", step.id}});
      } else if (step.kind == StepKind::kMark) {
        events.push_back(fmt::format("{}REDUCE_GRAD", step.chunk));
      } else {
        events.push_back(
            fmt::format("{}{}{}", step.chunk, step.kind == StepKind::kForward ? 'F' : 'B', step.micro_batch));
      }
    }
    ranks[std::to_string(r)] = std::move(events);
  }
  json["ranks"] = std::move(ranks);
  return json;
}

}  // namespace lockstep::plan
