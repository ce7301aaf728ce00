// What each pipeline stage owns: layers, parameters, tied weights and optimizer groups, and why a group is
// missing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace lockstep::plan {

struct OwnedParameter {
  const Parameter* parameter = nullptr;
  std::size_t layer = 0;
  bool gradient = true;  ///< it takes one in the last micro-batch
};

struct OptimizerGroup {
  std::string name{};  ///< "decay", "no-decay"
  std::vector<OwnedParameter> parameters{};
  std::uint64_t elements() const;
};

/// A weight that other stages hold copies of.
struct TiedWeight {
  std::string key{};
  std::string parameter{};
  std::uint64_t elements = 0;
  bool gradient = true;
  std::string why_no_gradient{};
};

struct Stage {
  std::vector<std::pair<std::size_t, std::size_t>>
      layers{};  ///< first and past the last, one entry a model chunk
  std::vector<OwnedParameter>
      parameters{};  ///< in order of registration; of layers tied within the stage once
  std::vector<OptimizerGroup> groups{};
  std::vector<std::string> dropped{};  ///< groups that would be empty
  std::vector<TiedWeight> ties{};
  bool experts = false;
  std::string why_dropped{};  ///< "stage 1 holds only the tied embedding, which has no bias ..."; empty where
                              ///< nothing was dropped
};

/// How a rank's settings differ from the plan's.
struct RankSettings {
  double clip_grad = 1;
  bool find_unused = false;
  bool drop_empty = true;
  std::vector<std::int64_t> unused_layers{};
  std::vector<std::int64_t> sparse_layers{};
  std::optional<std::int64_t> num_tokens_source{};
  friend bool operator==(const RankSettings&, const RankSettings&) = default;
};
RankSettings plain_settings(const Plan& plan);

/// Layers of each stage and chunk. An error names the field of the plan.
Result<Parts> plan_parts(const Plan& plan);

/// Parts that the ranks of a stage hold, chunk by chunk. In a loop part c * stages + s is chunk c of stage s; where the
/// schedule is a V every second chunk runs back from the last rank, and DualPipe lays all parts out both ways.
std::vector<std::size_t> parts_of_stage(const Plan& plan, std::int64_t stage);

/// The last stage of the model lies on the first rank: the schedule is a V.
bool turns_back(const SchedulePlan& schedule);

/// Stages that hold layers of each tie key, in ascending order.
std::map<std::string, std::vector<std::int64_t>> tied_stages(const Plan& plan, const Parts& parts);

Stage make_stage(const Plan& plan, const Parts& parts, std::int64_t stage, const RankSettings& settings);

/// Tensors that the stage hands to the next one; those of the last layer before the cut that says.
std::vector<TensorShape> boundary_tensors(const Plan& plan, const Parts& parts, std::size_t part);

}  // namespace lockstep::plan
