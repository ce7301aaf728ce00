// Which layers each stage owns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model_spec.h"

namespace zero1 {

/// `parts` has stages + 1 entries; stage s owns layers [parts[s], parts[s+1]).
using Parts = std::vector<std::size_t>;

/// Equally many layers in each part, the remainder in the last.
Parts partition_uniform(std::size_t items, std::size_t parts);

/// Consecutive parts such that the heaviest is as light as can be; each takes as many items as fit. The
/// results are those of DeepSpeed at 85ce85dd (binary search over the limit); its later versions break ties
/// otherwise.
Parts partition_balanced(const std::vector<std::size_t>& weights, std::size_t parts);

/// `method`: uniform, parameters, type:REGEX (case-insensitive search in the spec's type) or at:I,J,...
/// (stages begin at these layers). Throws ConfigError for an unknown method, a regex that is none or matches
/// nothing, and bad boundaries.
Parts partition(const std::string& method, const std::vector<LayerSpec>& specs, const ModelShape& model,
                std::size_t stages);

/// Throws ConfigError if a stage owns no parameters: it would have no optimizer, and no part in what its
/// peers reduce.
void check_no_empty_stage(const Parts& parts, const std::vector<LayerSpec>& specs, const ModelShape& model);

}  // namespace zero1
