#include "plan/schedule/schedule_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "plan/schedule/deepspeed.h"
#include "plan/schedule/dualpipe.h"
#include "plan/schedule/megatron.h"
#include "plan/schedule/torch_lower.h"
#include "plan/schedule/torch_orders.h"
#include "plan/schedule/torch_runtime.h"
#include "plan/schedule/trace_text.h"
#include "plan/schedule/zero_bubble.h"

namespace lockstep::plan {
namespace {

using Json = nlohmann::ordered_json;

Error bad_flag(std::string_view flag, std::string_view what) {
  return {ErrorCode::kUnsupported, fmt::format("--{}: {}", flag, what)};
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  });
  return result;
}

template <class T>
struct Named {
  std::string_view name;
  T value;
};

/// By name, whatever its case. `extra_words`: a label may follow the name.
template <class T, std::size_t N>
Result<T> find_named(std::string_view name, const std::array<Named<T>, N>& names, bool extra_words = false) {
  const std::string wanted = lower(name);
  std::string known;
  for (const Named<T>& one : names) {
    const std::string candidate = lower(one.name);
    if (wanted == candidate || (extra_words && wanted.starts_with(candidate + " "))) return one.value;
    known += (known.empty() ? "" : ", ") + std::string(one.name);
  }
  return Error{ErrorCode::kUsage,
               fmt::format("--name: no schedule '{}'; there are {}", name.substr(0, 80), known)};
}

/// Positive, and small enough together that the expansion is.
std::optional<Error> check_sizes(const ScheduleQuery& query, std::int64_t virtual_stages,
                                 std::int64_t limit = kMaxForwardPasses) {
  const std::array<Named<std::int64_t>, 3> sizes = {
      {{"stages", query.stages}, {"virtual", virtual_stages}, {"micro-batches", query.micro_batches}}};
  for (const auto& [flag, value] : sizes) {
    if (value < 1) return bad_flag(flag, fmt::format("{}; expected at least 1", value));
    if (value > limit)
      return bad_flag(flag, fmt::format("{} is more than the {} that are expanded", value, limit));
  }
  if (query.total_stages && *query.total_stages != query.stages * virtual_stages) {
    return bad_flag("num-stages",
                    fmt::format("{}, but {} stages * {} virtual stages are {}", *query.total_stages,
                                query.stages, virtual_stages, query.stages * virtual_stages));
  }
  // Each is at most 2^20, so the product fits.
  if (query.stages * virtual_stages * query.micro_batches <= limit) return std::nullopt;
  const auto largest = std::ranges::max(sizes, {}, &Named<std::int64_t>::value);
  return bad_flag(largest.name,
                  fmt::format("{}: {} stages * {} virtual stages * {} micro-batches are more than the {} "
                              "forward passes that are expanded",
                              largest.value, query.stages, virtual_stages, query.micro_batches, limit));
}

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

Json rank_lines(const Timeline& timeline, bool show_world) {
  const auto received = received_payloads(timeline);
  Json ranks = Json::object();
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
    ranks[std::to_string(r)] = trace_lines(timeline.ranks[r], received[r], show_world);
  }
  return ranks;
}

Result<Json> deepspeed_json(const ScheduleQuery& query) {
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
  Json per_stage = Json::array();
  for (std::size_t s = 0; s < stages.size(); ++s) {
    Json steps = Json::array();
    std::size_t at = 0;
    for (const std::uint32_t end : stages[s].step_ends) {
      Json step = Json::array();
      for (; at < end; ++at) {
        const Instruction& instruction = stages[s].instructions[at];
        Json one = Json::array({instruction_name(instruction.name)});
        if (takes_buffer(instruction.name)) one.push_back(instruction.buffer);
        step.push_back(std::move(one));
      }
      steps.push_back(std::move(step));
    }
    per_stage.push_back({{"stage", s}, {"num_pipe_buffers", stages[s].buffers}, {"steps", std::move(steps)}});
  }
  return Json{
      {"micro_batches", query.micro_batches}, {"stages", query.stages}, {"per_stage", std::move(per_stage)}};
}

/// "3", or "rank0:6, others:4".
Result<std::vector<std::int32_t>> parse_groups(const std::string& text, std::int64_t stages) {
  const Error error = bad_flag(
      "group",
      fmt::format(
          "'{}' is no number of micro-batches (3) and no list of ranks with theirs (rank0:6, others:4)",
          text.substr(0, 80)));
  const auto number = [](std::string_view digits, std::int32_t& value) {
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return code == std::errc{} && end == digits.data() + digits.size() && value > 0;
  };
  std::int32_t one = 0;
  if (number(text, one)) return std::vector<std::int32_t>{one};
  std::vector<std::int32_t> sizes(static_cast<std::size_t>(stages));
  std::int32_t others = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    while (item.starts_with(' ')) item.remove_prefix(1);
    const std::size_t colon = item.find(':');
    std::int32_t value = 0;
    if (colon == std::string_view::npos || !number(item.substr(colon + 1), value)) return error;
    const std::string_view who = item.substr(0, colon);
    std::int32_t rank = -1;
    if (who == "others") {
      others = value;
    } else if (!who.starts_with("rank")) {
      return error;
    } else if (const std::string_view digits = who.substr(4); digits == "0" || number(digits, rank)) {
      rank = std::max(rank, 0);
      if (rank >= stages) return bad_flag("group", fmt::format("rank {} of {} stages", rank, stages));
      sizes[static_cast<std::size_t>(rank)] = value;
    } else {
      return error;
    }
  }
  for (std::int32_t& size : sizes) size = size == 0 ? others : size;
  if (std::ranges::find(sizes, 0) != sizes.end()) return error;
  return sizes;
}

Result<Json> megatron_json(const ScheduleQuery& query) {
  static constexpr std::array<Named<MegatronSchedule>, 4> kNames = {{
      {"no_pipelining", MegatronSchedule::kNoPipelining},
      {"1F1B", MegatronSchedule::k1F1B},
      {"interleaved", MegatronSchedule::kInterleaved},
      {"MUTANT ranks disagree on microbatch_group_size_per_vp_stage", MegatronSchedule::kInterleaved},
  }};
  const Result<MegatronSchedule> schedule = find_named(query.name, kNames, true);
  if (!schedule) return schedule.error();
  const bool interleaved = *schedule == MegatronSchedule::kInterleaved;
  if (!interleaved && query.virtual_stages.value_or(1) != 1)
    return bad_flag("virtual", "only 'interleaved' has model chunks");
  if (interleaved && !query.virtual_stages)
    return Error{ErrorCode::kUsage, "--virtual: 'interleaved' needs the number of model chunks"};
  if (*schedule == MegatronSchedule::kNoPipelining && query.stages != 1)
    return bad_flag("stages", "no_pipelining has one stage");
  const std::int64_t chunks = query.virtual_stages.value_or(1);
  if (const auto error = check_sizes(query, chunks)) return *error;

  MegatronQuery megatron{.schedule = *schedule,
                         .stages = narrow(query.stages),
                         .chunks = narrow(chunks),
                         .micro_batches = narrow(query.micro_batches),
                         .forward_only = query.forward_only};
  Json config = Json::object();
  const auto option = [&config](std::string_view name, const std::optional<bool>& given, bool& value) {
    if (!given) return;
    value = *given;
    config[std::string(name)] = *given;
  };
  option("batch_p2p_comm", query.batch_p2p_comm, megatron.options.batch_p2p_comm);
  option("batch_p2p_sync", query.batch_p2p_sync, megatron.options.batch_p2p_sync);
  option("overlap_p2p_comm", query.overlap_p2p_comm, megatron.options.overlap_p2p_comm);
  option("overlap_p2p_comm_warmup_flush", query.overlap_p2p_comm_warmup_flush,
         megatron.options.overlap_p2p_comm_warmup_flush);
  option("variable_seq_lengths", query.variable_seq_lengths, megatron.options.variable_seq_lengths);
  option("mtp_standalone", query.mtp_standalone, megatron.options.mtp_standalone);
  if (!query.group.empty()) {
    if (!interleaved) return bad_flag("group", "only 'interleaved' has groups of micro-batches");
    const auto sizes = parse_groups(query.group, query.stages);
    if (!sizes) return sizes.error();
    megatron.options.group_sizes = *sizes;
    if (sizes->size() == 1 && query.group.find(':') == std::string::npos) {
      config["group"] = sizes->front();
    } else {
      config["group"] = query.group;
    }
  }

  Json json{{"schedule", query.name},
            {"pp", query.stages},
            {"vp", interleaved ? Json(chunks) : Json(nullptr)},
            {"microbatches", query.micro_batches},
            {"forward_only", query.forward_only},
            {"config", std::move(config)}};
  if (const auto rejection = megatron_rejection(megatron)) {
    json["error"] = *rejection;
  } else {
    json["ranks"] = rank_lines(megatron_timeline(megatron), true);
  }
  return json;
}

Json order_json(const TorchOrder& order) {
  Json rows = Json::object();
  for (std::size_t r = 0; r < order.size(); ++r) rows[std::to_string(r)] = torch_row_text(order[r]);
  return rows;
}

Result<Json> torch_json(const ScheduleQuery& query) {
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
  TorchQuery torch{.ranks = 1};
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

  Json json{{"schedule", label},
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
  const Result<TorchLowered> lowered = lower_torch_order(order, torch.stages(), torch.micro_batches);
  if (!lowered) {
    json["lower_error"] = lowered.error().message;
    return json;
  }
  json["stage_to_rank"] = lowered->stage_ranks;
  json["compute_comms"] = order_json(lowered->compute_comms);
  json["compute_sendrecv"] = order_json(lowered->compute_sendrecv);
  return json;
}

Result<Json> torch_runtime_json(const ScheduleQuery& query) {
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
  const Timeline timeline = torch_runtime_timeline(*schedule, narrow(query.stages),
                                                   narrow(query.micro_batches), query.forward_only);
  Json ranks = Json::object();
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
    Json events = Json::array();
    const RankTimeline& rank = timeline.ranks[r];
    for (const Step& step : rank.steps) {
      if (step.kind == StepKind::kBatch) {
        Json messages = Json::array();
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
  return Json{{"schedule", *schedule == TorchRuntimeSchedule::kGPipe ? "GPipe(runtime)" : "1F1B(runtime)"},
              {"pp", query.stages},
              {"microbatches", query.micro_batches},
              {"ranks", std::move(ranks)}};
}

struct ZeroBubbleName {
  ZeroBubbleSchedule schedule = ZeroBubbleSchedule::k1F1B;
  bool post_validation = false;
};

Result<Json> zero_bubble_json(const ScheduleQuery& query) {
  using enum ZeroBubbleSchedule;
  static constexpr std::array<Named<ZeroBubbleName>, 11> kNames = {{
      {"1f1b", {k1F1B, false}},
      {"zb-h1-h2(manual_order, max_mem=2p)", {kZb, false}},
      {"zb-h1-h2", {kZb, false}},
      {"zb", {kZb, false}},
      {"zb(post_validation)", {kZb, true}},
      {"vpp", {kVpp, false}},
      {"zbv", {kZbv, false}},
      {"zbv(post_validation)", {kZbv, true}},
      {"zbv_greedy_min", {kZbvGreedyMin, false}},
      {"zbv_greedy_half", {kZbvGreedyHalf, false}},
      {"v1f1b", {kV1F1B, false}},
  }};
  const Result<ZeroBubbleName> name = find_named(query.name, kNames);
  if (!name) return name.error();
  const bool validated = query.post_validation.value_or(name->post_validation);
  std::string label = query.name;
  if (name->schedule == kZb || name->schedule == kZbv) {
    if (validated) {
      label = name->schedule == kZb ? "zb(post_validation)" : "zbv(post_validation)";
    } else {
      label = name->schedule == kZb ? "zb-h1-h2(manual_order, max_mem=2p)" : "zbv";
    }
  }
  const std::int32_t takes = chunks_of(name->schedule);
  const std::int64_t chunks = query.virtual_stages.value_or(takes == 0 ? 2 : takes);
  if (takes != 0 && chunks != takes)
    return bad_flag("virtual", fmt::format("{} has {} model chunks a rank", label, takes));
  if (query.forward_only) return bad_flag("forward-only", "zero-bubble's schedules are those of training");
  // The greedy searches take the square of this in time.
  const bool greedy = name->schedule == kZbvGreedyMin || name->schedule == kZbvGreedyHalf;
  if (const auto error = check_sizes(query, chunks, greedy ? 1 << 12 : 1 << 17)) return *error;
  const ZeroBubbleQuery zero_bubble{.schedule = name->schedule,
                                    .stages = narrow(query.stages),
                                    .micro_batches = narrow(query.micro_batches),
                                    .chunks = narrow(chunks),
                                    .post_validation = validated};
  Json json{{"schedule", label},
            {"stages", query.stages},
            {"microbatches", query.micro_batches},
            {"chunks", chunks},
            {"post_validation", validated}};
  const auto rows = [](const ZbOrder& order) {
    Json all = Json::object();
    for (std::size_t r = 0; r < order.size(); ++r) all[std::to_string(r)] = zb_row_text(order[r]);
    return all;
  };
  const Result<ZbOrder> order = zero_bubble_order(zero_bubble);
  if (!order) {
    json["error"] = order.error().message;
    return json;
  }
  json["compute"] = rows(*order);
  const Result<ZbOrder> with_messages = zero_bubble_with_messages(zero_bubble, *order);
  if (with_messages) {
    json["with_comms"] = rows(*with_messages);
  } else {
    json["error"] = with_messages.error().message;
  }
  return json;
}

Result<Json> dualpipe_json(const ScheduleQuery& query) {
  static constexpr std::array<Named<DualPipeKind>, 2> kNames = {
      {{"DualPipe", DualPipeKind::kBothWays}, {"DualPipeV", DualPipeKind::kVee}}};
  const Result<DualPipeKind> kind = find_named(query.name, kNames);
  if (!kind) return kind.error();
  if (query.virtual_stages.value_or(2) != 2)
    return bad_flag("virtual", "DualPipe has two model chunks a rank");
  if (query.forward_only) return bad_flag("forward-only", "DualPipe's schedules are those of training");
  if (const auto error = check_sizes(query, 1)) return *error;
  Json json{{"schedule", *kind == DualPipeKind::kBothWays ? "DualPipe" : "DualPipeV"},
            {"pp", query.stages},
            {"num_chunks", query.micro_batches}};
  if (const auto rejection = dualpipe_rejection(*kind, narrow(query.stages), narrow(query.micro_batches))) {
    json["error"] = *rejection;
  } else {
    json["ranks"] =
        rank_lines(dualpipe_timeline(*kind, narrow(query.stages), narrow(query.micro_batches)), false);
  }
  return json;
}

Result<Json> expand(const ScheduleQuery& query) {
  switch (query.framework) {
    case ScheduleFramework::kDeepSpeed:
      return deepspeed_json(query);
    case ScheduleFramework::kMegatron:
      return megatron_json(query);
    case ScheduleFramework::kTorch:
      return torch_json(query);
    case ScheduleFramework::kTorchRuntime:
      return torch_runtime_json(query);
    case ScheduleFramework::kZeroBubble:
      return zero_bubble_json(query);
    case ScheduleFramework::kDualPipe:
      return dualpipe_json(query);
  }
  return Error{ErrorCode::kUsage, "--framework"};
}

}  // namespace

Result<std::string> schedule_json(const ScheduleQuery& query) {
  const Result<Json> json = expand(query);
  if (!json) return json.error();
  return json->dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::plan
