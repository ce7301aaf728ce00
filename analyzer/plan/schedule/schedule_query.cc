#include <algorithm>

#include "plan/schedule/query_parts.h"
#include "plan/schedule/trace_text.h"

namespace lockstep::plan {

Error bad_flag(std::string_view flag, std::string_view what) {
  return {ErrorCode::kUnsupported, fmt::format("--{}: {}", flag, what)};
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  });
  return result;
}

std::optional<Error> check_sizes(const ScheduleQuery& query, std::int64_t virtual_stages,
                                 std::int64_t limit) {
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

ScheduleJson rank_lines(const Timeline& timeline, bool show_world) {
  const auto received = received_payloads(timeline);
  ScheduleJson ranks = ScheduleJson::object();
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
    ranks[std::to_string(r)] = trace_lines(timeline.ranks[r], received[r], show_world);
  }
  return ranks;
}

namespace {

Result<ScheduleJson> expand(const ScheduleQuery& query) {
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
  const Result<ScheduleJson> json = expand(query);
  if (!json) return json.error();
  return json->dump(-1, ' ', false, ScheduleJson::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::plan
