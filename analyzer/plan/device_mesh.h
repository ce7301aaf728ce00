// Process groups of torch DeviceMesh, and the meshes that torchtitan builds of one world.
#pragma once

#include <string>
#include <vector>

#include "plan/rank_groups.h"

namespace lockstep::plan {

struct MeshDimension {
  std::string name{};
  std::int64_t size = 1;
};
using Mesh = std::vector<MeshDimension>;

/// The groups of one dimension of a row-major mesh, in order of creation: until torch 2.9 that of mesh.swapdims(-1,
/// dimension).reshape(-1, size), which is not the order of first ranks; later (`sorted`) that of first ranks. Errors: sizes
/// below 1, worlds beyond kMaxWorld.
Result<RankLists> mesh_groups(const Mesh& mesh, std::size_t dimension, bool sorted = false);

/// Degrees of torchtitan's ParallelDims.
struct TitanDegrees {
  std::int64_t world = 1;
  std::int64_t pp = 1;
  std::int64_t dp_replicate = 1;
  std::int64_t dp_shard = -1;  ///< -1: what remains of the world
  std::int64_t cp = 1;
  std::int64_t tp = 1;
  std::int64_t ep = 1;
};

/// The same ranks seen under several meshes. `loss` is batch and cp of `dataloading` as one dimension.
struct TitanMeshes {
  Mesh dataloading{};
  Mesh loss{};
  Mesh dense{};       ///< with dp_shard and cp as one dimension "fsdp"
  Mesh dense_spmd{};  ///< with both apart
  Mesh sparse{};      ///< of the experts
};

/// Errors: degrees that do not make up the world, ep that does not divide dp_shard * cp * tp.
Result<TitanMeshes> titan_meshes(const TitanDegrees& degrees);

}  // namespace lockstep::plan
