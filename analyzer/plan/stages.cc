// From parts to stages: who owns which layers and weights.
#include "plan/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "plan/parameter_groups.h"
#include "plan/schedule/timeline.h"

namespace lockstep::plan {
namespace {

std::uint64_t trained_elements(const Layer& layer) {
  std::uint64_t sum = 0;
  for (const Parameter& parameter : layer.parameters)
    if (!parameter.frozen) sum += parameter.shape.elements();
  return sum;
}

bool contains(const std::vector<std::int64_t>& list, std::size_t value) {
  return std::ranges::find(list, static_cast<std::int64_t>(value)) != list.end();
}

void add_layer(const Plan& plan, std::size_t index, const RankSettings& settings,
               std::set<std::string>& ties_seen, Stage& stage) {
  const Layer& layer = plan.layers[index];
  stage.experts = stage.experts || layer.experts;
  // Layers that are tied within one stage are one module.
  const bool again = !layer.tied.empty() && !ties_seen.insert(layer.tied).second;
  const bool unused = contains(settings.unused_layers, index);
  if (again) return;
  for (const Parameter& parameter : layer.parameters) {
    const bool gradient = !parameter.frozen && !parameter.unused && !unused;
    stage.parameters.push_back({&parameter, index, gradient});
    if (std::ranges::find(layer.tied_weights, parameter.name) == layer.tied_weights.end()) continue;
    TiedWeight tie{layer.tied, parameter.name, parameter.shape.elements(), gradient, ""};
    if (!gradient)
      tie.why_no_gradient = fmt::format("{} of the {} is {}", parameter.name, display_name(layer),
                                        parameter.frozen ? "frozen" : "not used");
    stage.ties.push_back(std::move(tie));
  }
}

std::int64_t stage_with(const Plan& plan, std::size_t part) {
  for (std::int64_t stage = 0; stage < plan.topology.pipe; ++stage)
    if (const auto parts = parts_of_stage(plan, stage); std::ranges::find(parts, part) != parts.end()) return stage;
  return 0;
}

}  // namespace

std::uint64_t OptimizerGroup::elements() const {
  std::uint64_t sum = 0;
  for (const OwnedParameter& owned : parameters) sum += owned.parameter->shape.elements();
  return sum;
}

RankSettings plain_settings(const Plan& plan) {
  return {plan.optimizer.clip_grad, plan.optimizer.find_unused, plan.optimizer.drop_empty, {}, {}, {}};
}

bool turns_back(const SchedulePlan& schedule) {
  constexpr std::array<std::string_view, 6> kVees = {"zbv",   "zbv_greedy_min", "zbv_greedy_half",
                                                     "v1f1b", "dualpipev",      "deepseek_dualpipev"};
  return std::ranges::find(kVees, schedule.name) != kVees.end();
}

std::vector<std::size_t> parts_of_stage(const Plan& plan, std::int64_t stage) {
  const bool two_ways = plan.schedule.name == "dualpipe";
  const Placement placement = two_ways                    ? Placement::kTwoWay
                              : turns_back(plan.schedule) ? Placement::kVee
                                                          : Placement::kLoop;
  std::vector<std::size_t> parts;
  const auto chunks = static_cast<std::int32_t>(two_ways ? 2 : plan.schedule.chunks);
  for (std::int32_t chunk = 0; chunk < chunks; ++chunk)
    parts.push_back(static_cast<std::size_t>(stage_of(placement, static_cast<std::int32_t>(plan.topology.pipe),
                                                      static_cast<std::int32_t>(stage), chunk)));
  return parts;
}

Result<Parts> plan_parts(const Plan& plan) {
  const auto parts_wanted = static_cast<std::size_t>(plan.topology.pipe * plan.schedule.chunks);
  const auto check = [&](const Parts& parts, std::string_view field) -> Result<Parts> {
    if (parts.size() != parts_wanted + 1)
      return Error{ErrorCode::kMalformed,
                   fmt::format("{}: {} parts do not make {} stages of {} chunks", field, parts.size() - 1,
                               plan.topology.pipe, plan.schedule.chunks)};
    for (std::size_t part = 0; part + 1 < parts.size(); ++part)
      if (parts[part] == parts[part + 1])
        return Error{ErrorCode::kMalformed,
                     fmt::format("{}: stage {} holds no layers; {} layers are cut at {}", field,
                                 stage_with(plan, part), plan.layers.size(),
                                 fmt::join(parts, ", "))};
    return parts;
  };
  if (plan.parts) return check(*plan.parts, "$.partition.parts");
  std::vector<LayerSize> sizes;
  for (const Layer& layer : plan.layers) sizes.push_back({layer.class_name, trained_elements(layer)});
  const auto parts = partition_layers(plan.partition_method, sizes, parts_wanted, plan.algorithm);
  if (!parts) return Error{parts.error().code, fmt::format("$.partition.method: {}", parts.error().message)};
  return check(*parts, "$.partition.method");
}

std::map<std::string, std::vector<std::int64_t>> tied_stages(const Plan& plan, const Parts& parts) {
  std::map<std::string, std::set<std::int64_t>> stages;
  for (std::int64_t stage = 0; stage < plan.topology.pipe; ++stage)
    for (const std::size_t part : parts_of_stage(plan, stage))
      for (std::size_t layer = parts[part]; layer < parts[part + 1]; ++layer)
        if (!plan.layers[layer].tied.empty()) stages[plan.layers[layer].tied].insert(stage);
  std::map<std::string, std::vector<std::int64_t>> lists;
  for (const auto& [key, set] : stages) lists[key].assign(set.begin(), set.end());
  return lists;
}

Stage make_stage(const Plan& plan, const Parts& parts, std::int64_t index, const RankSettings& settings) {
  Stage stage;
  std::set<std::string> ties_seen;
  for (const std::size_t part : parts_of_stage(plan, index)) {
    stage.layers.emplace_back(parts[part], parts[part + 1]);
    for (std::size_t layer = parts[part]; layer < parts[part + 1]; ++layer)
      add_layer(plan, layer, settings, ties_seen, stage);
  }
  make_groups(plan, index, settings.drop_empty, stage);
  return stage;
}

std::vector<TensorShape> boundary_tensors(const Plan& plan, const Parts& parts, std::size_t part) {
  for (std::size_t layer = parts[part + 1]; layer-- > 0;)
    if (plan.layers[layer].outputs) return *plan.layers[layer].outputs;
  return {};
}

}  // namespace lockstep::plan
