// `lockstep plan groups --framework megatron`.
#include "cli/plan_groups_of.h"
#include "plan/megatron_groups.h"

namespace lockstep {
namespace {

// Keys of "args" in the golden file: the arguments of initialize_model_parallel.
constexpr std::string_view kArgs[] = {"tensor_model_parallel_size",
                                      "pipeline_model_parallel_size",
                                      "virtual_pipeline_model_parallel_size",
                                      "context_parallel_size",
                                      "hierarchical_context_parallel_sizes",
                                      "hybrid_context_parallel",
                                      "expert_model_parallel_size",
                                      "expert_tensor_parallel_size",
                                      "gtp_remat_size",
                                      "expert_gtp_remat_size",
                                      "num_distributed_optimizer_instances",
                                      "order",
                                      "rank_offset"};

constexpr PlanParameter kParameters[] = {
    {"world", ParameterKind::kInteger, "number of ranks"},
    {"tensor_model_parallel_size", ParameterKind::kInteger, "default 1, as for all sizes"},
    {"pipeline_model_parallel_size", ParameterKind::kInteger, ""},
    {"virtual_pipeline_model_parallel_size", ParameterKind::kInteger, ""},
    {"context_parallel_size", ParameterKind::kInteger, ""},
    {"hierarchical_context_parallel_sizes", ParameterKind::kIntegers, ""},
    {"hybrid_context_parallel", ParameterKind::kBoolean, ""},
    {"expert_model_parallel_size", ParameterKind::kInteger, ""},
    {"expert_tensor_parallel_size", ParameterKind::kInteger, "default: as tensor_model_parallel_size"},
    {"gtp_remat_size", ParameterKind::kInteger, ""},
    {"expert_gtp_remat_size", ParameterKind::kInteger, ""},
    {"num_distributed_optimizer_instances", ParameterKind::kInteger, ""},
    {"order", ParameterKind::kText, "default tp-cp-ep-dp-pp"},
    {"rank_offset", ParameterKind::kInteger, "default 0"},
    {"create_gloo_process_groups", ParameterKind::kBoolean, "default false here (true in Megatron)"},
    {"args", ParameterKind::kJson, "any of these as one JSON object"},
};

plan::MegatronLayout layout_from(const PlanArguments& arguments) {
  plan::MegatronLayout layout;
  layout.world = arguments.integer("world", 1);
  layout.tensor = arguments.integer("tensor_model_parallel_size", 1);
  layout.pipeline = arguments.integer("pipeline_model_parallel_size", 1);
  layout.virtual_pipeline = arguments.integer("virtual_pipeline_model_parallel_size");
  layout.context = arguments.integer("context_parallel_size", 1);
  layout.hierarchical_context = arguments.integers("hierarchical_context_parallel_sizes");
  layout.hybrid_context = arguments.boolean("hybrid_context_parallel", false);
  layout.expert = arguments.integer("expert_model_parallel_size", 1);
  layout.expert_tensor = arguments.integer("expert_tensor_parallel_size");
  layout.gtp_remat = arguments.integer("gtp_remat_size", 1);
  layout.expert_gtp_remat = arguments.integer("expert_gtp_remat_size", 1);
  layout.optimizer_instances = arguments.integer("num_distributed_optimizer_instances", 1);
  layout.order = arguments.text("order", layout.order);
  layout.rank_offset = arguments.integer("rank_offset", 0);
  layout.gloo = arguments.boolean("create_gloo_process_groups", false);
  return layout;
}

Result<PlanJson> groups_json(const PlanArguments& arguments) {
  const plan::MegatronLayout layout = layout_from(arguments);
  PlanJson out = PlanJson::object();
  out["world"] = layout.world;
  out["args"] = arguments.only(kArgs);
  out["create_gloo_process_groups"] = layout.gloo;
  const auto groups = plan::megatron_groups(layout);
  if (!groups) {
    if (!is_framework_error(groups.error())) return groups.error();
    out["error"] = framework_error(groups.error());
    return out;
  }
  PlanJson by_name = PlanJson::object();
  PlanJson order = PlanJson::array();
  for (const plan::NewGroup& group : *groups) {
    by_name[group.name].push_back(group.ranks);
    if (order.empty() || order.back() != group.name) order.push_back(group.name);
  }
  out["groups"] = std::move(by_name);
  out["new_group_order"] = std::move(order);
  out["n_new_group_calls"] = groups->size();
  return out;
}

}  // namespace

int plan_groups_of_megatron(const Subcommand& subcommand, std::span<const std::string_view> args) {
  PlanArguments arguments;
  if (const auto done = parse_plan_arguments(subcommand, kParameters, args, arguments)) return *done;
  if (!arguments.has("world")) return usage_error(subcommand, "--world is needed");
  return print_plan_json(groups_json(arguments));
}

}  // namespace lockstep
