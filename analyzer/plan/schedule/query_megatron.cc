// Megatron's schedules as JSON.
#include <algorithm>
#include <charconv>

#include "plan/schedule/megatron.h"
#include "plan/schedule/query_parts.h"

namespace lockstep::plan {
namespace {

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

}  // namespace

Result<ScheduleJson> megatron_json(const ScheduleQuery& query) {
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
  ScheduleJson config = ScheduleJson::object();
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

  ScheduleJson json{{"schedule", query.name},
                    {"pp", query.stages},
                    {"vp", interleaved ? ScheduleJson(chunks) : ScheduleJson(nullptr)},
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

}  // namespace lockstep::plan
