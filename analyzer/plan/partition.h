// Cuts a list of layers into pipeline stages as DeepSpeed does, in both versions of its algorithms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::plan {

/// Which DeepSpeed: its way to balance weights changed, and what it does with a remainder with it.
enum class PartitionAlgorithm : std::uint8_t {
  kBinarySearch =
      0,  ///< up to 2024: bisects the weight of the heaviest part; a remainder goes to the last part
  kDynamic =
      1,  ///< since: least spread between heaviest and lightest part; a remainder goes to the first parts
};

/// `parts[s]` ... `parts[s + 1]` are the layers of stage s; one entry more than there are stages. Stages may
/// be empty.
using Parts = std::vector<std::size_t>;

/// Work that a plan may ask for; more is an error rather than a long wait.
inline constexpr std::size_t kMaxLayers = 100'000;
inline constexpr std::size_t kMaxParts = 65'536;

/// Equal numbers of layers. Errors: no part, sizes beyond the limits.
Result<Parts> partition_uniform(std::size_t layers, std::size_t parts, PartitionAlgorithm algorithm);

/// Balances sums of weights. Errors: no part, a negative or not finite weight, sums of 2^53 and more, sizes
/// that would take more than about a second, and weights on which the framework itself fails.
Result<Parts> partition_balanced(std::span<const double> weights, std::size_t parts,
                                 PartitionAlgorithm algorithm);

/// What a partition method sees of a layer.
struct LayerSize {
  std::string class_name{};      ///< class or function; empty: an object without a name, which no regex finds
  std::uint64_t parameters = 0;  ///< trainable elements
};

/// By the name of the method: "uniform", "parameters", "type:REGEX" (in any case; REGEX is found anywhere in
/// a class name, case ignored, and ends at the next colon, as in the framework). Errors name what the method
/// lacks.
Result<Parts> partition_layers(std::string_view method, std::span<const LayerSize> layers, std::size_t parts,
                               PartitionAlgorithm algorithm);

}  // namespace lockstep::plan
