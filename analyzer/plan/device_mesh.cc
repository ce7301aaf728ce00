// Row-major meshes: groups of a dimension (torch.distributed.device_mesh) and torchtitan's views
// (parallel_dims.py).
#include "plan/device_mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::plan {

Result<RankLists> mesh_groups(const Mesh& mesh, std::size_t dimension, bool sorted) {
  std::vector<std::string> names;
  std::vector<std::int64_t> sizes;
  for (const MeshDimension& each : mesh) {
    names.push_back(each.name);
    sizes.push_back(each.size);
  }
  const auto world = checked_world(names, sizes);
  if (!world) return world.error();
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  const std::int64_t size = sizes[dimension];
  const std::int64_t stride = strides[dimension];
  std::swap(sizes[dimension], sizes.back());
  std::swap(strides[dimension], strides.back());

  RankLists groups;
  for (std::int64_t row = 0; row < *world / size; ++row) {
    std::int64_t first = 0;
    std::int64_t rest = row;
    for (std::size_t i = sizes.size() - 1; i-- > 0;) {  // the last before the dimension itself runs fastest
      first += rest % sizes[i] * strides[i];
      rest /= sizes[i];
    }
    groups.push_back(strided(first, size, stride));
  }
  if (sorted) std::ranges::sort(groups);
  return groups;
}

Result<TitanMeshes> titan_meshes(const TitanDegrees& degrees) {
  const auto& [world, pp, dp_replicate, dp_shard, cp, tp, ep] = degrees;
  if (std::min({dp_replicate, cp, tp, pp, ep}) < 1)
    return rejected("AssertionError", "Parallelism degree should be >= 1, except for dp_shard");
  if (dp_shard != -1 && dp_shard < 1) return rejected("AssertionError", "dp_shard must -1 or >=1.");
  const std::vector<std::string> names{"pp", "dp_replicate", "cp", "tp", "ep"};
  if (const auto others = checked_world(names, std::vector{pp, dp_replicate, cp, tp, ep}); !others)
    return others.error();
  const std::int64_t fixed = pp * dp_replicate * cp * tp;
  const std::int64_t shard = dp_shard == -1 ? world / fixed : dp_shard;
  if (shard < 1) return rejected("AssertionError", "");
  if (world > kMaxWorld || fixed * shard != world)
    return rejected("AssertionError",
                    fmt::format("Invalid parallel dims: dp_replicate({}) * dp_shard({}) * cp({}) * tp({}) * "
                                "pp({}) != WORLD_SIZE({})",
                                dp_replicate, shard, cp, tp, pp, world));
  const std::int64_t fsdp = shard * cp;
  if (fsdp * tp % ep != 0)
    return rejected("ValueError", fmt::format("expert_parallel_degree ({}) must divide dp_shard * cp * tp ({})", ep, fsdp * tp));
  const std::int64_t batch = dp_replicate * shard;
  return TitanMeshes{
      .dataloading = {{"pp", pp}, {"batch", batch}, {"cp", cp}, {"tp", tp}},
      .loss = {{"pp", pp}, {"loss", batch * cp}, {"tp", tp}},
      .dense = {{"pp", pp}, {"dp_replicate", dp_replicate}, {"fsdp", fsdp}, {"tp", tp}},
      .dense_spmd = {{"pp", pp}, {"dp_replicate", dp_replicate}, {"dp_shard", shard}, {"cp", cp}, {"tp", tp}},
      .sparse = {{"pp", pp}, {"dp_replicate", dp_replicate}, {"efsdp", fsdp * tp / ep}, {"ep", ep}},
  };
}

}  // namespace lockstep::plan
