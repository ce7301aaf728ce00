// Coordinates and group families of DeepSpeed, Megatron and torch layouts.
#include "plan/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plan/deepspeed_groups.h"
#include "plan/device_mesh.h"
#include "plan/megatron_groups.h"
#include "plan/versions.h"

namespace lockstep::plan {
namespace {

std::vector<std::int32_t> position_in_group(const GroupFamily& family, std::int64_t world) {
  std::vector<std::int32_t> positions(static_cast<std::size_t>(world), 0);
  for (const RankList& group : family.groups)
    for (std::size_t i = 0; i < group.size(); ++i)
      positions[static_cast<std::size_t>(group[i])] = static_cast<std::int32_t>(i);
  return positions;
}

class LayoutMaker {
 public:
  LayoutMaker(const Plan& plan, std::int64_t world) : plan_(plan) {
    layout_.world = world;
    layout_.families["world"] = GroupFamily::of({strided(0, world)}, world);
  }

  void add(const std::string& family, RankLists groups) {
    layout_.families[family] = GroupFamily::of(std::move(groups), layout_.world);
  }

  /// A coordinate is the position in the group along the axis.
  void set_axis(Axis axis, std::string_view family) {
    const auto found = layout_.families.find(family);
    auto& values = layout_.coordinates[static_cast<std::size_t>(axis)];
    if (found == layout_.families.end())
      values.assign(static_cast<std::size_t>(layout_.world), 0);
    else
      values = position_in_group(found->second, layout_.world);
  }

  void add_ties(const std::map<std::string, std::vector<std::int64_t>>& tied_stages,
                std::string_view pipe_family) {
    const RankLists pipes = layout_.families.find(pipe_family)->second.groups;
    for (const auto& [key, stages] : tied_stages) {
      RankLists groups;
      for (const RankList& pipe : pipes) {
        RankList& group = groups.emplace_back();
        for (const std::int64_t stage : stages) group.push_back(pipe[static_cast<std::size_t>(stage)]);
      }
      add("tied." + key, std::move(groups));
    }
  }

  Layout finish(std::string_view pipe, std::string_view tensor, std::string_view expert,
                std::string_view data) {
    set_axis(Axis::kStage, pipe);
    set_axis(Axis::kTensor, tensor);
    set_axis(Axis::kExpert, expert);
    set_axis(Axis::kData, data);
    auto& ranks = layout_.coordinates[static_cast<std::size_t>(Axis::kRank)];
    ranks.resize(static_cast<std::size_t>(layout_.world));
    std::iota(ranks.begin(), ranks.end(), 0);
    return std::move(layout_);
  }

 private:
  const Plan& plan_;
  Layout layout_{};
};

Result<Layout> deepspeed_layout(const Plan& plan,
                                const std::map<std::string, std::vector<std::int64_t>>& tied_stages) {
  const Topology& topology = plan.topology;
  const auto grid = deepspeed_grid({topology.pipe, topology.data, topology.tensor});
  if (!grid) return grid.error();
  const std::int64_t world = topology.pipe * topology.data * topology.tensor;
  LayoutMaker maker(plan, world);
  maker.add("model", grid->model);
  maker.add("data", grid->data);
  maker.add("pipe", grid->pipe);
  maker.add("slice", grid->slice);
  if (topology.expert > 1) {
    const auto experts =
        topology.tensor > 1
            ? expert_groups_with_tensor(world, topology.tensor, topology.pipe, topology.expert, false)
            : expert_groups(world, topology.pipe, topology.expert, false);
    if (!experts) return experts.error();
    maker.add("expert", experts->expert_parallel);
    maker.add("expert_data", experts->expert_data_parallel);
  }
  if (plan.optimizer.hpz > 1) {
    auto secondary = hpz_groups(world, plan.optimizer.hpz);
    if (!secondary) return secondary.error();
    maker.add("hpz", *std::move(secondary));
  }
  maker.add_ties(tied_stages, "pipe");
  return maker.finish("pipe", "slice", "expert", "data");
}

// What Megatron calls a group and what its developers call it.
constexpr std::pair<std::string_view, std::string_view> kMegatronNames[] = {
    {"DATA_PARALLEL_GROUP_WITH_CP", "dp_cp"},
    {"DATA_PARALLEL_GROUP", "dp"},
    {"CONTEXT_PARALLEL_GROUP", "cp"},
    {"MODEL_PARALLEL_GROUP", "mp"},
    {"TENSOR_MODEL_PARALLEL_GROUP", "tp"},
    {"PIPELINE_MODEL_PARALLEL_GROUP", "pp"},
    {"EMBEDDING_GROUP", "embd"},
    {"POSITION_EMBEDDING_GROUP", "pos_embd"},
    {"TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP", "tp_dp_cp"},
    {"EXPERT_MODEL_PARALLEL_GROUP", "ep"},
    {"EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP", "tp_ep_pp"},
    {"EXPERT_DATA_PARALLEL_GROUP", "expt_dp"},
    {"INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP", "intra_dp_cp"},
    {"INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP", "intra_dist_opt"},
};

Result<Layout> megatron_layout(const Plan& plan) {
  const Topology& topology = plan.topology;
  MegatronLayout arguments;
  arguments.world = topology.pipe * topology.data * topology.tensor * topology.context;
  arguments.tensor = topology.tensor;
  arguments.pipeline = topology.pipe;
  arguments.context = topology.context;
  arguments.expert = topology.expert;
  if (topology.expert_tensor > 0) arguments.expert_tensor = topology.expert_tensor;
  arguments.optimizer_instances = topology.optimizer_instances;
  if (!topology.order.empty()) arguments.order = topology.order;
  arguments.gloo = false;
  const auto groups = megatron_groups(arguments);
  if (!groups) return groups.error();
  std::map<std::string_view, RankLists> by_name;
  for (const NewGroup& group : *groups)
    for (const auto& [native, name] : kMegatronNames)
      if (group.name == native) by_name[name].push_back(group.ranks);
  LayoutMaker maker(plan, arguments.world);
  for (auto& [name, lists] : by_name) maker.add(std::string(name), std::move(lists));
  return maker.finish("pp", "tp", "ep", "dp_cp");
}

Result<Layout> torch_layout(const Plan& plan) {
  const Topology& topology = plan.topology;
  const std::int64_t shard = topology.data / topology.replicate;
  const Mesh mesh{{"pp", topology.pipe},
                  {"dp_replicate", topology.replicate},
                  {"fsdp", shard * topology.context},
                  {"tp", topology.tensor}};
  const std::int64_t world = topology.pipe * topology.data * topology.context * topology.tensor;
  LayoutMaker maker(plan, world);
  for (std::size_t i = 0; i < mesh.size(); ++i) {
    auto groups = mesh_groups(mesh, i, torch_sorts_mesh_groups(plan.version));
    if (!groups) return groups.error();
    maker.add(mesh[i].name, *std::move(groups));
  }
  auto data = mesh_groups({mesh[0], {"dp", topology.data * topology.context}, mesh[3]}, 1, torch_sorts_mesh_groups(plan.version));
  if (!data) return data.error();
  maker.add("dp", *std::move(data));
  return maker.finish("pp", "tp", "ep", "dp");
}

}  // namespace

std::string_view axis_name(Axis axis) {
  switch (axis) {
    case Axis::kStage:
      return "stage";
    case Axis::kTensor:
      return "tensor rank";
    case Axis::kExpert:
      return "expert rank";
    case Axis::kData:
      return "data rank";
    case Axis::kRank:
      return "rank";
  }
  return "rank";
}

GroupFamily GroupFamily::of(RankLists groups, std::int64_t world) {
  GroupFamily family;
  family.group_of_rank.assign(static_cast<std::size_t>(world), -1);
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (const std::int32_t rank : groups[i])
      family.group_of_rank[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(i);
  family.groups = std::move(groups);
  return family;
}

const RankList* Layout::group(std::string_view family, std::int32_t rank) const {
  const auto found = families.find(family);
  if (found == families.end()) return nullptr;
  const std::int32_t index = found->second.group_of_rank[static_cast<std::size_t>(rank)];
  return index < 0 ? nullptr : &found->second.groups[static_cast<std::size_t>(index)];
}

std::int64_t Layout::group_size(std::string_view family, std::int32_t rank) const {
  const RankList* const ranks = group(family, rank);
  return ranks == nullptr ? 1 : std::ssize(*ranks);
}

Result<Layout> make_layout(const Plan& plan,
                           const std::map<std::string, std::vector<std::int64_t>>& tied_stages) {
  switch (plan.framework) {
    case Framework::kDeepSpeed:
      return deepspeed_layout(plan, tied_stages);
    case Framework::kMegatron:
      return megatron_layout(plan);
    case Framework::kTorch:
      return torch_layout(plan);
  }
  return Error{ErrorCode::kMalformed, "$.framework.name: no such framework"};
}

}  // namespace lockstep::plan
