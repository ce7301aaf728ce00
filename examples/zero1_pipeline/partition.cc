#include "partition.h"

#include <algorithm>
#include <numeric>
#include <regex>
#include <sstream>

#include "config.h"

namespace zero1 {
namespace {

/// Fills part after part up to, not including, the first item with which it would weigh `limit` or more.
/// Returns whether the last part, which takes the rest, stays within the limit.
bool fits(const std::vector<double>& sums, std::size_t parts, double limit, Parts& filled) {
  const std::size_t items = sums.size();
  filled.assign(parts + 1, items);
  filled[0] = 0;
  double reach = limit;
  for (std::size_t part = 1; part < parts; ++part) {
    const auto end = std::lower_bound(sums.begin(), sums.end(), reach);
    filled[part] = static_cast<std::size_t>(end - sums.begin());
    if (filled[part] == items) return true;
    // A part that takes nothing, since its first item is too heavy, leaves nothing to add the limit to.
    if (filled[part] == 0) return limit >= sums.back();
    reach = sums[filled[part] - 1] + limit;
  }
  return reach >= sums.back();
}

Parts partition_at(const std::string& list, std::size_t layers, std::size_t stages) {
  Parts parts = {0};
  std::istringstream in(list);
  std::string word;
  while (std::getline(in, word, ',')) {
    if (word.empty() || word.find_first_not_of("0123456789") != std::string::npos || word.size() > 6)
      throw ConfigError("--partition at:" + list + ": '" + word + "' is no layer");
    parts.push_back(std::stoul(word));
  }
  parts.push_back(layers);
  if (parts.size() != stages + 1 || !std::is_sorted(parts.begin(), parts.end()))
    throw ConfigError("--partition at:" + list + ": needs " + std::to_string(stages - 1) +
                      " ascending layers out of 0.." + std::to_string(layers));
  return parts;
}

}  // namespace

Parts partition_uniform(std::size_t items, std::size_t parts) {
  Parts result(parts + 1, items);
  const std::size_t each = items <= parts ? 1 : items / parts;
  for (std::size_t part = 0; part < parts; ++part) result[part] = std::min(part * each, items);
  return result;
}

Parts partition_balanced(const std::vector<std::size_t>& weights, std::size_t parts) {
  if (weights.size() <= parts) return partition_uniform(weights.size(), parts);
  constexpr double kStep = 1e-3;  // weights are whole numbers: the search ends within one
  std::vector<double> sums(weights.begin(), weights.end());
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  double low = sums.back() / static_cast<double>(parts);
  double high = sums.back();
  Parts result;
  while (high > low + kStep) {
    const double middle = low + (high - low) / 2;
    if (fits(sums, parts, middle, result))
      high = middle;
    else
      low = middle + kStep;
  }
  fits(sums, parts, high, result);
  return result;
}

Parts partition(const std::string& method, const std::vector<LayerSpec>& specs, const ModelShape& model,
                std::size_t stages) {
  if (method == "uniform") return partition_uniform(specs.size(), stages);
  if (method == "parameters") return partition_balanced(parameters_by_layer(specs, model), stages);
  if (method.starts_with("at:")) return partition_at(method.substr(3), specs.size(), stages);
  if (!method.starts_with("type:"))
    throw ConfigError("--partition " + method + ": not one of uniform, parameters, type:REGEX, at:I,J,...");
  std::vector<std::size_t> weights;
  try {
    const std::regex pattern(method.substr(5), std::regex::ECMAScript | std::regex::icase);
    for (const LayerSpec& spec : specs) weights.push_back(std::regex_search(spec.type, pattern) ? 1 : 0);
  } catch (const std::regex_error& error) {
    throw ConfigError("--partition " + method + ": not a regular expression: " + error.what());
  }
  if (std::count(weights.begin(), weights.end(), 1U) == 0)
    throw ConfigError("--partition " + method + ": no layer has such a type");
  return partition_balanced(weights, stages);
}

void check_no_empty_stage(const Parts& parts, const std::vector<LayerSpec>& specs, const ModelShape& model) {
  const std::vector<std::size_t> counts = parameters_by_layer(specs, model);
  for (std::size_t stage = 0; stage + 1 < parts.size(); ++stage) {
    std::size_t owned = 0;
    for (std::size_t layer = parts[stage]; layer < parts[stage + 1]; ++layer) owned += counts[layer];
    if (owned == 0)
      throw ConfigError("stage " + std::to_string(stage) + " of " + std::to_string(parts.size() - 1) +
                        " owns layers [" + std::to_string(parts[stage]) + ", " +
                        std::to_string(parts[stage + 1]) +
                        ") and no parameters; choose another --partition or a smaller --pipe");
  }
}

}  // namespace zero1
