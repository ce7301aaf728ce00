// The grid of DeepSpeed's pipeline engine (runtime/pipe/topology.py).
#include <algorithm>

#include "plan/deepspeed_groups.h"
#include "plan/device_mesh.h"

namespace lockstep::plan {
namespace {

// Like Python's product over the other axes: rows in order of their first rank, unlike those of a DeviceMesh.
Result<RankLists> lists_along(const Mesh& mesh, std::size_t axis) {
  return mesh_groups(mesh, axis, true);
}

}  // namespace

Result<DeepSpeedGrid> deepspeed_grid(const DeepSpeedTopology& topology) {
  Mesh mesh{{"pipe", topology.pp}, {"data", topology.dp}};
  if (topology.mp) mesh.push_back({"model", *topology.mp});
  DeepSpeedGrid grid;
  auto pipe = lists_along(mesh, 0);
  if (!pipe) return pipe.error();
  grid.pipe = *std::move(pipe);
  grid.data = *lists_along(mesh, 1);
  const std::int64_t slices = topology.mp.value_or(1);
  const std::int64_t world = topology.pp * topology.dp * slices;
  for (const MeshDimension& dimension : mesh) grid.axes.push_back(dimension.name);
  for (std::int64_t rank = 0; rank < world; ++rank) {
    grid.coordinates.push_back({rank / (topology.dp * slices), rank / slices % topology.dp});
    if (topology.mp) grid.coordinates.back().push_back(rank % slices);
  }
  grid.slice = topology.mp ? *lists_along(mesh, 2) : RankLists{};
  if (!topology.mp)
    for (std::int64_t rank = 0; rank < world; ++rank) grid.slice.push_back(strided(rank, 1));
  for (std::int64_t data = 0; data < topology.dp; ++data) {
    RankList& members = grid.model.emplace_back();
    for (std::int64_t stage = 0; stage < topology.pp; ++stage)
      for (std::int64_t slice = 0; slice < slices; ++slice)
        members.push_back(static_cast<std::int32_t>((stage * topology.dp + data) * slices + slice));
  }
  const std::int64_t per_stage = topology.dp * slices;
  for (std::int64_t rank = 0; rank < world; ++rank)
    grid.p2p.push_back(
        {static_cast<std::int32_t>(rank), static_cast<std::int32_t>((rank + per_stage) % world)});
  return grid;
}

RankLists DeepSpeedGrid::creation_order() const {
  RankLists order = model;
  for (const RankLists* lists : {&data, &pipe, &slice})
    order.insert(order.end(), lists->begin(), lists->end());
  return order;
}

const RankList& group_of(const RankLists& lists, std::int32_t rank) {
  return *std::ranges::find_if(
      lists, [rank](const RankList& list) { return std::ranges::find(list, rank) != list.end(); });
}

}  // namespace lockstep::plan
