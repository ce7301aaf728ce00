// Process groups that DeepSpeed makes: the grid of pipeline, data and model parallelism, hpZ, MiCS and
// experts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/rank_groups.h"

namespace lockstep::plan {

/// Axes pipe, data and, if `mp` is there, model; row-major, the last fastest.
struct DeepSpeedTopology {
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::optional<std::int64_t> mp{};  ///< absent: PipeDataParallelTopology, which has no axis model
};

/// Coordinates of a rank, in order of the axes.
using Coordinates = std::vector<std::int64_t>;

struct DeepSpeedGrid {
  std::vector<std::string> axes{};
  std::vector<Coordinates> coordinates{};  ///< by rank
  RankLists model{};  ///< what get_model_parallel_group() returns: all stages and slices of one data index
  RankLists data{};
  RankLists pipe{};
  RankLists slice{};  ///< tensor slices; of one rank each without model parallelism
  RankLists p2p{};    ///< by rank: itself and its successor in the pipeline, the last and the first included

  /// In the order in which PipelineParallelGrid makes them.
  RankLists creation_order() const;
};

Result<DeepSpeedGrid> deepspeed_grid(const DeepSpeedTopology& topology);

/// The group of `lists` that holds `rank`; every grid list covers all ranks.
const RankList& group_of(const RankLists& lists, std::int32_t rank);

/// Secondary partitions of ZeRO++ (zero_hpz_partition_size).
Result<RankLists> hpz_groups(std::int64_t world, std::int64_t partition_size);

struct MicsGroups {
  RankLists shard{};
  RankLists replicate{};
  std::int64_t span_nodes = 0;  ///< nodes that one shard group covers whole
};
Result<MicsGroups> mics_groups(std::int64_t world, std::int64_t shard_size, std::int64_t devices_per_node);
/// In order of creation; `hierarchical` adds those within and across nodes.
Result<RankLists> mics_creation_order(const MicsGroups& groups, bool hierarchical);

/// Groups of experts with and without tensor parallelism, which take different paths through the framework.
struct ExpertGroups {
  RankLists expert_parallel{};
  RankLists expert_data_parallel{};
};
/// Without model parallelism; the data-parallel groups are made first.
Result<ExpertGroups> expert_groups(std::int64_t world, std::int64_t pp, std::int64_t ep,
                                   bool data_before_expert);
/// With tensor parallelism; the expert-parallel groups are made first.
Result<ExpertGroups> expert_groups_with_tensor(std::int64_t world, std::int64_t tp, std::int64_t pp,
                                               std::int64_t ep, bool data_before_expert);

}  // namespace lockstep::plan
