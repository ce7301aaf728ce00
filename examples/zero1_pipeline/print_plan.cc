#include "print_plan.h"

#include <nlohmann/json.hpp>

#include <string_view>

#include "communicator.h"
#include "corpus.h"
#include "partition.h"

namespace zero1 {
namespace {

using Json = nlohmann::ordered_json;

/// The class that a rule of parameter groups looks at: whether a parameter decays follows from it and from
/// the name.
std::string module_of(const Parameter<F32>& parameter, const LayerSpec& spec) {
  if (parameter.name.find("norm") != std::string::npos || spec.kind == LayerKind::kFinalNorm)
    return "LayerNorm";
  return spec.kind == LayerKind::kBlock ? "Linear" : "Embedding";
}

/// In which gradients are added up: MPI cannot add bf16, so there they travel as float.
const char* sum_datatype(Precision precision) {
  if (precision == Precision::kF64) return "f64";
  return precision == Precision::kMixed && std::string_view(Communicator::kName) != "mpi" ? "bf16" : "f32";
}

Json layer_json(const LayerSpec& spec, std::size_t index, const Config& config) {
  Json layer;
  layer["class"] = spec.type;
  if (!spec.tied_key.empty()) layer["tied"] = spec.tied_key;
  std::shared_ptr<Embedding<F32>> tied;
  const auto made = make_layer<F32>(spec, index, config.model, tied);
  Json parameters = Json::array();
  Json tied_weights = Json::array();
  for (const Parameter<F32>* parameter : made->parameters()) {
    Json one;
    const std::string name = parameter->name.substr(parameter->name.find('.') + 1);
    one["name"] = name;
    one["module"] = module_of(*parameter, spec);
    one["shape"] = parameter->shape;
    parameters.push_back(one);
    tied_weights.push_back(name);
  }
  if (!spec.tied_key.empty()) layer["tied_weights"] = tied_weights;
  if (!parameters.empty()) layer["parameters"] = parameters;
  if (spec.kind == LayerKind::kEmbedding)
    layer["outputs"] = {{{"shape", {config.micro_batch_size, config.model.sequence, config.model.hidden}},
                         {"datatype", config.precision == Precision::kF64 ? "f64" : "f32"}}};
  return layer;
}

}  // namespace

std::string plan_json(const Config& config) {
  const std::vector<LayerSpec> specs = layer_specs(config.model);
  const Parts parts = partition(config.partition, specs, config.model, static_cast<std::size_t>(config.pipe));
  check_no_empty_stage(parts, specs, config.model);
  Json plan;
  plan["schema"] = "lockstep-plan/1";
  plan["name"] =
      "zero1_pipeline --norm " + std::string(name_of(config.norm)) + " --partition " + config.partition;
  plan["description"] =
      "printed by examples/zero1_pipeline; instructions and reductions in the order of DeepSpeed 0.5.6";
  plan["framework"] = {{"name", "deepspeed"}, {"version", "0.5.6"}};
  plan["topology"] = {{"pipe", config.pipe}, {"data", config.data}, {"tensor", Config::tensor}};
  plan["datatype"] = config.precision == Precision::kF64     ? "f64"
                     : config.precision == Precision::kMixed ? "bf16"
                                                             : "f32";
  Json layers = Json::array();
  for (std::size_t i = 0; i < specs.size(); ++i) layers.push_back(layer_json(specs[i], i, config));
  plan["layers"] = layers;
  if (config.partition.starts_with("at:"))
    plan["partition"] = {{"parts", parts}};
  else
    plan["partition"] = {{"method", config.partition}, {"algorithm", "binary_search"}};
  plan["zero"] = {{"stage", 1},
                  {"reduction", config.reduce == Reduce::kAllReduce ? "flat_all_reduce" : "flat_reduce_scatter"},
                  {"part_alignment", 1}};
  plan["optimizer"] = {{"groups", "megatron"},
                       {"stepper", "zero"},
                       {"norm", config.norm == Norm::kPerGroup ? "per_group"
                                : config.norm == Norm::kFused  ? "once"
                                                               : "vector"},
                       {"norm_datatype", "f64"},
                       {"gradient_datatype", sum_datatype(config.precision)},
                       {"drop_empty", config.norm != Norm::kAgreedGroups},
                       {"clip_grad", config.clip},
                       {"loss_scale", true}};
  plan["schedule"] = {{"name", "1f1b"},  // one stage too is run by the pipeline engine
                      {"micro_batches", config.micro_batches},
                      {"new_version", false},
                      {"loss", {{"shape", {1}}, {"datatype", "f64"}}}};
  return plan.dump(2) + "\n";
}

}  // namespace zero1
