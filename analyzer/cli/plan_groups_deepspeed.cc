// `lockstep plan groups --framework deepspeed`: which of its groups are meant follows from the parameters
// that are given.
#include <algorithm>

#include "cli/plan_groups_of.h"
#include "plan/deepspeed_groups.h"

namespace lockstep {
namespace {

constexpr PlanParameter kParameters[] = {
    {"world", ParameterKind::kInteger, "number of ranks"},
    {"zero_hpz_partition_size", ParameterKind::kInteger, "secondary partitions of ZeRO++"},
    {"shard_size", ParameterKind::kInteger, "MiCS"},
    {"hierarchical", ParameterKind::kBoolean, "MiCS: hierarchical all-gather, default false"},
    {"ndev_per_node", ParameterKind::kInteger, "MiCS: devices of a node, default 8"},
    {"ep_size", ParameterKind::kInteger, "experts without model parallelism"},
    {"use_data_before_expert_parallel", ParameterKind::kBoolean, "experts: default false"},
    {"tp", ParameterKind::kInteger, "experts with tensor parallelism: --world --tp --ep --pp"},
    {"ep", ParameterKind::kInteger, ""},
    {"pp", ParameterKind::kInteger,
     "grid of the pipeline engine: --pp --dp --mp; with --world: also what each rank belongs to"},
    {"dp", ParameterKind::kInteger, ""},
    {"mp", ParameterKind::kInteger, "null: a grid without the axis model"},
};

constexpr std::int64_t kDevicesPerNode = 8;

Result<PlanJson> hpz_json(const PlanArguments& arguments) {
  const std::int64_t world = arguments.integer("world", 1);
  const std::int64_t size = arguments.integer("zero_hpz_partition_size", 1);
  const auto groups = plan::hpz_groups(world, size);
  if (!groups && !is_framework_error(groups.error())) return groups.error();
  return PlanJson{{"world", world},
                  {"zero_hpz_partition_size", size},
                  {"new_group", groups ? PlanJson(*groups) : framework_error(groups.error())}};
}

Result<PlanJson> mics_json(const PlanArguments& arguments) {
  const std::int64_t world = arguments.integer("world", 1);
  const std::int64_t shard_size = arguments.integer("shard_size", 1);
  const std::int64_t devices = arguments.integer("ndev_per_node", kDevicesPerNode);
  const bool hierarchical = arguments.boolean("hierarchical", false);
  PlanJson out{{"world", world},
               {"shard_size", shard_size},
               {"hierarchical", hierarchical},
               {"ndev_per_node", devices}};
  const auto groups = plan::mics_groups(world, shard_size, devices);
  if (!groups) {
    if (!is_framework_error(groups.error())) return groups.error();
    out["new_group"] = framework_error(groups.error());
    out["cfg"] = nullptr;
    return out;
  }
  const auto order = plan::mics_creation_order(*groups, hierarchical);
  out["new_group"] = order ? PlanJson(*order) : framework_error(order.error());
  out["cfg"] = {{"replicate_groups", groups->replicate},
                {"shard_groups", groups->shard},
                {"span_nodes", groups->span_nodes}};
  return out;
}

Result<PlanJson> expert_json(const PlanArguments& arguments) {
  const std::int64_t world = arguments.integer("world", 1);
  const std::int64_t ep = arguments.integer("ep_size", 1);
  const bool data_first = arguments.boolean("use_data_before_expert_parallel", false);
  const auto groups = plan::expert_groups(world, arguments.integer("pp", 1), ep, data_first);
  if (!groups && !is_framework_error(groups.error())) return groups.error();
  PlanJson calls = groups ? PlanJson(groups->expert_data_parallel) : framework_error(groups.error());
  if (groups)
    for (const plan::RankList& group : groups->expert_parallel) calls.push_back(group);
  PlanJson out{{"world", world},
               {"ep_size", ep},
               {"use_data_before_expert_parallel", data_first},
               {"new_group", calls}};
  if (arguments.has("pp")) out["pp"] = arguments.integer("pp", 1);
  return out;
}

Result<PlanJson> expert_with_tensor_json(const PlanArguments& arguments) {
  const std::int64_t world = arguments.integer("world", 1);
  const std::int64_t tp = arguments.integer("tp", 1);
  const std::int64_t ep = arguments.integer("ep", 1);
  const std::int64_t pp = arguments.integer("pp", 1);
  constexpr std::string_view kOrder[] = {"use_data_before_expert_parallel"};
  PlanJson out{{"world", world}, {"tp", tp}, {"ep", ep}, {"pp", pp}};
  out.update(arguments.only(kOrder));
  const auto groups = plan::expert_groups_with_tensor(world, tp, pp, ep, arguments.boolean(kOrder[0], false));
  if (!groups) {
    if (!is_framework_error(groups.error())) return groups.error();
    out["error"] = framework_error(groups.error());
    return out;
  }
  out["expert_parallel_groups"] = groups->expert_parallel;
  out["expert_data_parallel_groups"] = groups->expert_data_parallel;
  return out;
}

PlanJson topology_json(const plan::DeepSpeedGrid& grid) {
  const auto rank_in = [](const plan::RankList& group, std::int32_t rank) {
    return std::ranges::find(group, rank) - group.begin();
  };
  PlanJson ranks = PlanJson::array();
  for (std::size_t i = 0; i < grid.coordinates.size(); ++i) {
    const auto rank = static_cast<std::int32_t>(i);
    PlanJson coordinates = PlanJson::object();
    for (std::size_t axis = 0; axis < grid.axes.size(); ++axis)
      coordinates[grid.axes[axis]] = grid.coordinates[i][axis];
    const plan::RankList& model = plan::group_of(grid.model, rank);
    const plan::RankList& slice = plan::group_of(grid.slice, rank);
    ranks.push_back({{"rank", rank},
                     {"coord", coordinates},
                     {"stage_id", grid.coordinates[i][0]},
                     {"data_parallel_id", grid.coordinates[i][1]},
                     {"model_parallel_group", model},
                     {"model_parallel_rank", rank_in(model, rank)},
                     {"data_parallel_group", plan::group_of(grid.data, rank)},
                     {"pipe_parallel_group", plan::group_of(grid.pipe, rank)},
                     {"slice_parallel_group", slice},
                     {"slice_parallel_rank", rank_in(slice, rank)}});
  }
  return {
      {"new_groups", grid.creation_order()}, {"p2p_groups_if_no_send_recv", grid.p2p}, {"per_rank", ranks}};
}

// With the world: every rank's view, under both topologies where both can be.
Result<PlanJson> ranks_json(const PlanArguments& arguments) {
  const plan::DeepSpeedTopology topology{arguments.integer("pp", 1), arguments.integer("dp", 1),
                                         arguments.integer("mp", 1)};
  const auto grid = plan::deepspeed_grid(topology);
  if (!grid) return grid.error();
  const auto world = static_cast<std::int64_t>(grid->coordinates.size());
  if (arguments.integer("world", world) != world) return plan::rejected("AssertionError", "Invalid Grid");
  constexpr std::int64_t kMostRanksListed = 4096;  // every rank lists its groups
  if (world > kMostRanksListed)
    return Error{ErrorCode::kMalformed,
                 "without --world for more than 4096 ranks: every rank would list its groups"};
  PlanJson out{{"pp", topology.pp}, {"dp", topology.dp}, {"mp", *topology.mp}, {"world", world}};
  out["PipeModelDataParallelTopology"] = topology_json(*grid);
  if (topology.mp == 1)
    out["PipeDataParallelTopology"] = topology_json(*plan::deepspeed_grid({topology.pp, topology.dp, {}}));
  return out;
}

Result<PlanJson> grid_json(const PlanArguments& arguments) {
  const plan::DeepSpeedTopology topology{arguments.integer("pp", 1), arguments.integer("dp", 1),
                                         arguments.integer("mp")};
  const auto grid = plan::deepspeed_grid(topology);
  if (!grid) return grid.error();
  PlanJson lists{{"pipe", grid->pipe}, {"data", grid->data}};
  if (topology.mp) lists["model"] = grid->slice;
  return PlanJson{{"pp", topology.pp},
                  {"dp", topology.dp},
                  {"mp", topology.mp ? PlanJson(*topology.mp) : PlanJson(nullptr)},
                  {"axes", grid->axes},
                  {"comm_lists", lists},
                  {"coords", grid->coordinates},
                  {"new_group_calls_rank0", grid->creation_order()},
                  {"p2p_groups", grid->p2p}};
}

}  // namespace

int plan_groups_of_deepspeed(const Subcommand& subcommand, std::span<const std::string_view> args) {
  PlanArguments arguments;
  if (const auto done = parse_plan_arguments(subcommand, kParameters, args, arguments)) return *done;
  if (arguments.has("dp"))
    return print_plan_json(arguments.has("world") ? ranks_json(arguments) : grid_json(arguments));
  if (!arguments.has("world"))
    return usage_error(subcommand, "--world and a size are needed, or --pp and --dp");
  if (arguments.has("zero_hpz_partition_size")) return print_plan_json(hpz_json(arguments));
  if (arguments.has("shard_size")) return print_plan_json(mics_json(arguments));
  if (arguments.has("ep_size")) return print_plan_json(expert_json(arguments));
  if (arguments.has("ep")) return print_plan_json(expert_with_tensor_json(arguments));
  return usage_error(subcommand,
                     "one of --zero-hpz-partition-size, --shard-size, --ep-size, --ep and --dp is needed");
}

}  // namespace lockstep
