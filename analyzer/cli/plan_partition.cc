// `lockstep plan partition`: the stages that DeepSpeed cuts a list of weights into.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/plan_parts.h"
#include "plan/partition.h"

namespace lockstep {
namespace {

using plan::LayerSize;
using plan::PartitionAlgorithm;
using plan::Parts;

int run_plan_partition(std::span<const std::string_view> args) {
  std::vector<double> weights;
  std::vector<std::string> classes;
  std::optional<std::size_t> items;
  std::size_t parts = 0;
  std::string method;
  std::string algorithm_name = "dynamic";

  CLI::App app;
  auto* const by_weight = app.add_option("--weights", weights, "weight of each layer: 0,1,0")->delimiter(',');
  auto* const by_number =
      app.add_option("--num-items,--items", items, "number of layers, to be cut uniformly");
  auto* const by_class =
      app.add_option("--classes", classes, "class name of each layer, for --method type:REGEX")
          ->delimiter(',');
  app.add_option("--method", method, "uniform, parameters (the weights) or type:REGEX");
  app.add_option("--parts,--num-parts", parts, "number of stages")->required();
  app.add_option("--algorithm", algorithm_name, "binary-search (DeepSpeed up to 2024) or dynamic (since)")
      ->check(CLI::IsMember({"binary-search", "dynamic"}))
      ->capture_default_str();
  by_weight->excludes(by_number);
  by_class->excludes(by_number);
  if (const auto done = parse_arguments(app, kPlanPartitionSubcommand, args)) return *done;
  if (by_weight->count() + by_class->count() + by_number->count() == 0)
    return usage_error(kPlanPartitionSubcommand, "one of --weights, --num-items and --classes is needed");

  const auto algorithm =
      algorithm_name == "dynamic" ? PartitionAlgorithm::kDynamic : PartitionAlgorithm::kBinarySearch;
  const std::size_t layers = items.value_or(std::max(weights.size(), classes.size()));
  const auto cut = [&]() -> Result<Parts> {
    if (method.empty() && classes.empty() && !items) return partition_balanced(weights, parts, algorithm);
    if (layers > plan::kMaxLayers) return partition_uniform(layers, parts, algorithm);
    std::vector<LayerSize> sizes(layers);
    for (std::size_t i = 0; i < classes.size(); ++i) sizes[i].class_name = classes[i];
    for (std::size_t i = 0; i < weights.size(); ++i)
      sizes[i].parameters = static_cast<std::uint64_t>(std::max(weights[i], 0.0));
    return partition_layers(method.empty() ? "uniform" : method, sizes, parts, algorithm);
  };
  const Result<Parts> bounds = cut();
  if (!bounds) return input_error(bounds.error());
  return write_stdout(nlohmann::ordered_json{{"parts", *bounds}}.dump() + '\n') ? kExitConsistent
                                                                                : kExitInternal;
}

}  // namespace

const Subcommand kPlanPartitionSubcommand = {
    .name = "plan partition",
    .summary = "The stages that DeepSpeed cuts weighted layers into.",
    .usage =
        "plan partition (--weights W,W... | --num-items N | --classes C,C...) --parts P [--method METHOD] "
        "[--algorithm binary-search|dynamic]",
    .run = run_plan_partition,
};

}  // namespace lockstep
