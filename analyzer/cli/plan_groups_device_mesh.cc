// `lockstep plan groups --framework device-mesh`: a mesh by names and shape, or the meshes of torchtitan by
// its degrees.
#include <fmt/format.h>

#include "cli/plan_groups_of.h"
#include "plan/device_mesh.h"
#include "plan/versions.h"

namespace lockstep {
namespace {

constexpr std::string_view kDegrees[] = {"world", "pp", "dp_replicate", "dp_shard", "cp", "tp", "ep"};

constexpr PlanParameter kParameters[] = {
    {"names", ParameterKind::kTexts, "a mesh: names of its dimensions"},
    {"shape", ParameterKind::kIntegers, "and their sizes, the last fastest"},
    {"world", ParameterKind::kInteger, "torchtitan: number of ranks"},
    {"pp", ParameterKind::kInteger, "torchtitan: degrees, default 1"},
    {"dp_replicate", ParameterKind::kInteger, ""},
    {"dp_shard", ParameterKind::kInteger, "default -1: what remains"},
    {"cp", ParameterKind::kInteger, ""},
    {"tp", ParameterKind::kInteger, ""},
    {"ep", ParameterKind::kInteger, ""},
    {"version", ParameterKind::kText, "of torch, which from 2.10 on makes groups in the order of their first ranks; default: before"},
    {"args", ParameterKind::kJson, "degrees as one JSON object"},
};

bool sorted_groups(const PlanArguments& arguments) { return plan::torch_sorts_mesh_groups(arguments.text("version", "")); }

Result<PlanJson> groups_by_dimension(const plan::Mesh& mesh, bool sorted) {
  PlanJson out = PlanJson::object();
  for (std::size_t i = 0; i < mesh.size(); ++i) {
    const auto groups = mesh_groups(mesh, i, sorted);
    if (!groups) return groups.error();
    out[mesh[i].name] = *groups;
  }
  return out;
}

Result<PlanJson> mesh_json(const PlanArguments& arguments) {
  const auto names = arguments.texts("names");
  const auto shape = arguments.integers("shape");
  if (names.size() != shape.size() || names.empty())
    return Error{ErrorCode::kUsage,
                 "--names and --shape must have as many entries as each other, and at least one"};
  plan::Mesh mesh;
  for (std::size_t i = 0; i < names.size(); ++i) mesh.push_back({names[i], shape[i]});
  const auto groups = groups_by_dimension(mesh, sorted_groups(arguments));
  if (!groups) return groups.error();
  return PlanJson{{"names", names}, {"shape", shape}, {"groups", *groups}};
}

Result<PlanJson> titan_json(const PlanArguments& arguments) {
  plan::TitanDegrees degrees;
  degrees.world = arguments.integer("world", 1);
  degrees.pp = arguments.integer("pp", 1);
  degrees.dp_replicate = arguments.integer("dp_replicate", 1);
  degrees.dp_shard = arguments.integer("dp_shard", -1);
  degrees.cp = arguments.integer("cp", 1);
  degrees.tp = arguments.integer("tp", 1);
  degrees.ep = arguments.integer("ep", 1);
  PlanJson out{{"args", arguments.only(kDegrees)}};
  const auto meshes = titan_meshes(degrees);
  if (!meshes) {
    if (!is_framework_error(meshes.error())) return meshes.error();
    out["error"] = framework_error(meshes.error());
    return out;
  }
  const bool sorted = sorted_groups(arguments);
  PlanJson& groups = out["groups"];
  // The sizes were checked: no mesh fails from here on.
  groups["dataloading"] = *groups_by_dimension(meshes->dataloading, sorted);
  groups["loss(batch*cp flattened)"] = *mesh_groups(meshes->loss, 1, sorted);
  groups["dense(partial_dtensor)"] = *groups_by_dimension(meshes->dense, sorted);
  groups["dense(spmd_types)"] = *groups_by_dimension(meshes->dense_spmd, sorted);
  groups["sparse"] = *groups_by_dimension(meshes->sparse, sorted);
  return out;
}

}  // namespace

int plan_groups_of_device_mesh(const Subcommand& subcommand, std::span<const std::string_view> args) {
  PlanArguments arguments;
  if (const auto done = parse_plan_arguments(subcommand, kParameters, args, arguments)) return *done;
  if (arguments.has("names") || arguments.has("shape")) return print_plan_json(mesh_json(arguments));
  if (arguments.has("world")) return print_plan_json(titan_json(arguments));
  return usage_error(subcommand, "--names and --shape are needed, or --world and the degrees of torchtitan");
}

}  // namespace lockstep
