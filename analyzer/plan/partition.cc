// Cuts a list of layers into pipeline stages: uniformly or by weight (DeepSpeed runtime/utils.py, old and
// new).
#include "plan/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::plan {
namespace {

constexpr double kLargestExact = 9007199254740992.0;  // 2^53: sums beyond lose elements
constexpr double kTolerance = 1e-3;                   // of the bisection, as in the framework
constexpr int kMostBisections = 1000;                 // 64 suffice for every sum below 2^53
constexpr double kMostSteps = 1e9;                    // of the dynamic programme: about a second

Error impossible(std::string message) { return {ErrorCode::kMalformed, std::move(message)}; }

Result<bool> check_sizes(std::size_t layers, std::size_t parts) {
  if (parts == 0) return impossible("there must be at least one part");
  if (parts > kMaxParts) return impossible(fmt::format("{} parts are more than {}", parts, kMaxParts));
  if (layers > kMaxLayers) return impossible(fmt::format("{} layers are more than {}", layers, kMaxLayers));
  return true;
}

Result<bool> check_weights(std::span<const double> weights) {
  double sum = 0;
  for (const double weight : weights) {
    if (!(weight >= 0)) return impossible(fmt::format("a weight must not be negative, as {} is", weight));
    sum += weight;
  }
  if (!(sum < kLargestExact)) return impossible("the sum of the weights is not below 2^53");
  return true;
}

/// One element a part, in order; parts behind the last element are empty.
Parts one_each(std::size_t layers, std::size_t parts) {
  Parts bounds;
  for (std::size_t part = 0; part <= parts; ++part) bounds.push_back(std::min(part, layers));
  return bounds;
}

struct Probe {
  Parts bounds{};
  bool fits = false;
};

/// Fills parts from the left up to `bottleneck`. `sums` are inclusive prefix sums. An empty first part makes
/// the framework read sums[-1], the total, as the weight so far; so do we.
Probe fill_parts(std::span<const double> sums, std::size_t parts, double bottleneck) {
  const std::size_t layers = sums.size();
  const std::size_t stride = layers / parts;
  Probe probe{Parts(parts + 1, layers), false};
  probe.bounds[0] = 0;
  double target = bottleneck;
  std::size_t step = stride;
  for (std::size_t part = 1; part < parts; ++part) {
    while (step < layers && sums[step] < target) step += stride;
    const auto window = sums.subspan(step - stride, std::min(step, layers) - (step - stride));
    const auto found = std::ranges::lower_bound(window, target) - window.begin();
    const std::size_t bound = step - stride + static_cast<std::size_t>(found);
    probe.bounds[part] = bound;
    if (bound == layers) {
      probe.fits = sums.back() - sums[probe.bounds[part - 1]] < bottleneck;
      return probe;
    }
    target = (bound == 0 ? sums.back() : sums[bound - 1]) + bottleneck;
  }
  probe.fits = target >= sums.back();
  return probe;
}

Result<Parts> bisect_bottleneck(std::span<const double> weights, std::size_t parts) {
  std::vector<double> sums(weights.begin(), weights.end());
  for (std::size_t layer = 1; layer < sums.size(); ++layer) sums[layer] += sums[layer - 1];
  double lower = sums.back() / static_cast<double>(parts);
  double upper = sums.back();
  for (int round = 0; upper > lower + kTolerance; ++round) {
    if (round == kMostBisections) return impossible("the bisection of these weights does not end");
    const double middle = lower + (upper - lower) / 2;
    if (fill_parts(sums, parts, middle).fits)
      upper = middle;
    else
      lower = middle + kTolerance;
  }
  Probe probe = fill_parts(sums, parts, upper);
  if (!probe.fits)
    return impossible(
        "the framework's own check fails on these weights (AssertionError in partition_balanced)");
  return std::move(probe.bounds);
}

/// Best way to cut the first i layers into j parts.
struct Cut {
  double cost = std::numeric_limits<double>::infinity();
  double heaviest = std::numeric_limits<double>::infinity();
  double lightest = std::numeric_limits<double>::infinity();
  std::size_t last = 0;  ///< first layer of the last part
};

/// Least difference between the heaviest and the lightest part; of equals the latest cut, as in the
/// framework.
Result<Parts> least_spread(std::span<const double> weights, std::size_t parts) {
  const std::size_t layers = weights.size();
  const double steps =
      static_cast<double>(layers) * static_cast<double>(layers) * static_cast<double>(parts) / 2;
  if (steps > kMostSteps)
    return impossible(
        fmt::format("{} layers in {} parts are too many to balance by the dynamic algorithm", layers, parts));
  std::vector<double> sums(layers + 1, 0);
  for (std::size_t layer = 0; layer < layers; ++layer) sums[layer + 1] = sums[layer] + weights[layer];
  const std::size_t width = parts + 1;
  std::vector<Cut> cuts((layers + 1) * width);
  cuts[0].cost = cuts[0].heaviest = 0;
  for (std::size_t i = 1; i <= layers; ++i)
    for (std::size_t j = 1; j <= std::min(i, parts); ++j) {
      Cut& best = cuts[i * width + j];
      for (std::size_t k = 0; k < i; ++k) {
        const Cut& before = cuts[k * width + j - 1];
        const double heaviest = std::max(before.heaviest, sums[i] - sums[k]);
        const double lightest = std::min(before.lightest, sums[i] - sums[k]);
        if (best.cost >= heaviest - lightest) best = {heaviest - lightest, heaviest, lightest, k};
      }
    }
  Parts bounds(parts + 1, layers);
  for (std::size_t part = parts; part > 0; --part) bounds[part - 1] = cuts[bounds[part] * width + part].last;
  return bounds;
}

}  // namespace

Result<Parts> partition_uniform(std::size_t layers, std::size_t parts, PartitionAlgorithm algorithm) {
  if (const auto sizes = check_sizes(layers, parts); !sizes) return sizes.error();
  if (layers <= parts) return one_each(layers, parts);
  const std::size_t share = layers / parts;
  const std::size_t remainder = layers % parts;
  Parts bounds;
  for (std::size_t part = 0; part < parts; ++part)
    bounds.push_back(share * part +
                     (algorithm == PartitionAlgorithm::kDynamic ? std::min(part, remainder) : 0));
  bounds.push_back(layers);
  return bounds;
}

Result<Parts> partition_balanced(std::span<const double> weights, std::size_t parts,
                                 PartitionAlgorithm algorithm) {
  if (const auto sizes = check_sizes(weights.size(), parts); !sizes) return sizes.error();
  if (const auto valid = check_weights(weights); !valid) return valid.error();
  if (weights.size() <= parts) return one_each(weights.size(), parts);
  switch (algorithm) {
    case PartitionAlgorithm::kBinarySearch:
      return bisect_bottleneck(weights, parts);
    case PartitionAlgorithm::kDynamic:
      return least_spread(weights, parts);
  }
  return impossible("no such algorithm");
}

}  // namespace lockstep::plan
