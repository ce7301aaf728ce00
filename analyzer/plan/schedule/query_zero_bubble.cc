// zero-bubble's schedules as JSON.
#include "plan/schedule/query_parts.h"
#include "plan/schedule/zero_bubble.h"

namespace lockstep::plan {
namespace {

struct ZeroBubbleName {
  ZeroBubbleSchedule schedule = ZeroBubbleSchedule::k1F1B;
  bool post_validation = false;
};

}  // namespace

Result<ScheduleJson> zero_bubble_json(const ScheduleQuery& query) {
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
  ScheduleJson json{{"schedule", label},
                    {"stages", query.stages},
                    {"microbatches", query.micro_batches},
                    {"chunks", chunks},
                    {"post_validation", validated}};
  const auto rows = [](const ZbOrder& order) {
    ScheduleJson all = ScheduleJson::object();
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

}  // namespace lockstep::plan
