// DualPipe's schedules as JSON.
#include "plan/schedule/dualpipe.h"
#include "plan/schedule/query_parts.h"

namespace lockstep::plan {

Result<ScheduleJson> dualpipe_json(const ScheduleQuery& query) {
  static constexpr std::array<Named<DualPipeKind>, 2> kNames = {
      {{"DualPipe", DualPipeKind::kBothWays}, {"DualPipeV", DualPipeKind::kVee}}};
  const Result<DualPipeKind> kind = find_named(query.name, kNames);
  if (!kind) return kind.error();
  if (query.virtual_stages.value_or(2) != 2)
    return bad_flag("virtual", "DualPipe has two model chunks a rank");
  if (query.forward_only) return bad_flag("forward-only", "DualPipe's schedules are those of training");
  if (const auto error = check_sizes(query, 1)) return *error;
  ScheduleJson json{{"schedule", *kind == DualPipeKind::kBothWays ? "DualPipe" : "DualPipeV"},
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

}  // namespace lockstep::plan
