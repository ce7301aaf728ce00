// From the name of a partition method and the layers to the weights that are balanced (DeepSpeed
// runtime/pipe/module.py).
#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "plan/partition.h"

namespace lockstep::plan {
namespace {

constexpr std::string_view kTypePrefix = "type:";

// The framework lowers the whole method before it looks at it, so that \S in a regex becomes \s.
std::string lowered(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

Result<std::vector<double>> weights_by_type(std::string_view pattern, std::span<const LayerSize> layers) {
  RE2::Options options;
  options.set_case_sensitive(false);
  options.set_log_errors(false);
  const RE2 regex(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!regex.ok())
    return Error{ErrorCode::kMalformed, fmt::format("'{}' is no regular expression that can be used here: {}",
                                                    pattern, regex.error())};
  std::vector<double> weights;
  for (const LayerSize& layer : layers)
    weights.push_back(!layer.class_name.empty() && RE2::PartialMatch(layer.class_name, regex) ? 1 : 0);
  if (std::ranges::find(weights, 1.0) == weights.end())
    return Error{ErrorCode::kMalformed,
                 fmt::format("Partitioning '{}' found no valid layers to partition.", pattern)};
  return weights;
}

}  // namespace

Result<Parts> partition_layers(std::string_view method, std::span<const LayerSize> layers, std::size_t parts,
                               PartitionAlgorithm algorithm) {
  const std::string name = lowered(method);
  if (name == "uniform") return partition_uniform(layers.size(), parts, algorithm);
  if (name == "parameters") {
    std::vector<double> weights;
    for (const LayerSize& layer : layers) weights.push_back(static_cast<double>(layer.parameters));
    return partition_balanced(weights, parts, algorithm);
  }
  if (name.starts_with(kTypePrefix)) {
    const std::string_view rest = std::string_view(name).substr(kTypePrefix.size());
    const auto weights = weights_by_type(rest.substr(0, rest.find(':')), layers);
    if (!weights) return weights.error();
    return partition_balanced(*weights, parts, algorithm);
  }
  return Error{ErrorCode::kMalformed, fmt::format("Partitioning method {} not implemented.", name)};
}

}  // namespace lockstep::plan
