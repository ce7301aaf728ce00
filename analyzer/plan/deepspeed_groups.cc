// hpZ and MiCS shard groups and expert groups of DeepSpeed (utils/groups.py, runtime/zero/mics_utils.py).
#include "plan/deepspeed_groups.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::plan {
namespace {

Result<bool> check_divisible(std::int64_t number, std::int64_t divisor) {
  if (number % divisor == 0) return true;
  return rejected("AssertionError", fmt::format("{} is not divisible by {}", number, divisor));
}

Result<bool> check_sizes(std::int64_t world, const std::vector<std::int64_t>& sizes) {
  if (world < 1 || world > kMaxWorld)
    return Error{ErrorCode::kMalformed,
                 fmt::format("world must be between 1 and {}, not {}", kMaxWorld, world)};
  for (const std::int64_t size : sizes)
    if (size < 1 || size > kMaxWorld)
      return Error{ErrorCode::kMalformed,
                   fmt::format("a size must be between 1 and {}, not {}", kMaxWorld, size)};
  return true;
}

RankLists consecutive(std::int64_t world, std::int64_t size) {
  RankLists groups;
  for (std::int64_t first = 0; first < world; first += size) groups.push_back(strided(first, size));
  return groups;
}

void append(RankLists& to, const RankLists& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace

Result<RankLists> hpz_groups(std::int64_t world, std::int64_t partition_size) {
  if (const auto valid = check_sizes(world, {partition_size}); !valid) return valid.error();
  const std::int64_t size = std::min(partition_size, world);
  if (const auto divides = check_divisible(world, size); !divides) return divides.error();
  return consecutive(world, size);
}

Result<MicsGroups> mics_groups(std::int64_t world, std::int64_t shard_size, std::int64_t devices_per_node) {
  if (const auto valid = check_sizes(world, {shard_size, devices_per_node}); !valid) return valid.error();
  if (world % shard_size != 0)
    return rejected(
        "AssertionError",
        fmt::format("dp group size is not dividable by dp_shard_size,  (world_size {}, pp_size 1, "
                    "dp_shard_size {})",
                    world, shard_size));
  MicsGroups groups;
  groups.shard = consecutive(world, shard_size);
  for (std::int64_t i = 0; i < shard_size; ++i)
    groups.replicate.push_back(strided(i, world / shard_size, shard_size));
  groups.span_nodes = shard_size / devices_per_node;
  return groups;
}

Result<RankLists> mics_creation_order(const MicsGroups& groups, bool hierarchical) {
  RankLists order = groups.shard;
  for (const RankList& group : groups.replicate)
    if (group.size() > 1) order.push_back(group);
  if (!hierarchical) return order;
  if (groups.span_nodes <= 1)
    return rejected("AssertionError", "sharding spans on single node, no need for hierarchy allgather");
  const auto shard_size = static_cast<std::int64_t>(groups.shard[0].size());
  if (shard_size % groups.span_nodes != 0) return rejected("AssertionError", "");
  const std::int64_t per_node = shard_size / groups.span_nodes;
  for (const RankList& shard : groups.shard)
    for (std::int64_t node = 0; node < groups.span_nodes; ++node)
      order.push_back(strided(shard[0] + node * per_node, per_node));
  for (const RankList& shard : groups.shard)
    for (std::int64_t i = 0; i < per_node; ++i)
      order.push_back(strided(shard[0] + i, groups.span_nodes, per_node));
  return order;
}

Result<ExpertGroups> expert_groups(std::int64_t world, std::int64_t pp, std::int64_t ep,
                                   bool data_before_expert) {
  if (const auto valid = check_sizes(world, {pp, ep}); !valid) return valid.error();
  if (const auto divides = check_divisible(world, pp); !divides) return divides.error();
  const std::int64_t stage = world / pp;
  if (const auto divides = check_divisible(stage, ep); !divides) return divides.error();
  const std::int64_t replicas = stage / ep;
  ExpertGroups groups;
  for (std::int64_t first = 0; first < world; first += stage)
    for (std::int64_t i = 0; i < ep; ++i)
      groups.expert_data_parallel.push_back(data_before_expert ? strided(first + i * replicas, replicas)
                                                               : strided(first + i, replicas, ep));
  if (!data_before_expert) {
    groups.expert_parallel = consecutive(world, ep);
    return groups;
  }
  for (std::int64_t first = 0; first < world; first += stage)
    for (std::int64_t i = 0; i < replicas; ++i)
      groups.expert_parallel.push_back(strided(first + i, ep, replicas));
  return groups;
}

Result<ExpertGroups> expert_groups_with_tensor(std::int64_t world, std::int64_t tp, std::int64_t pp,
                                               std::int64_t ep, bool data_before_expert) {
  if (const auto valid = check_sizes(world, {tp, pp, ep, tp * pp}); !valid) return valid.error();
  if (const auto divides = check_divisible(world, tp * pp); !divides) return divides.error();
  const std::int64_t dp = world / (tp * pp);
  if (const auto divides = check_divisible(dp, ep); !divides) return divides.error();
  const std::int64_t stage = world / pp;
  const std::int64_t replicas = dp / ep;
  ExpertGroups groups;
  for (std::int64_t first = 0; first < world; first += stage)
    for (std::int64_t slice = 0; slice < tp; ++slice) {
      // Data-parallel ranks of the slice, those of one expert group beside each other.
      RankList ranks;
      if (data_before_expert)
        for (std::int64_t i = 0; i < replicas; ++i) {
          const RankList part = strided(first + slice + i * tp, ep, replicas * tp);
          ranks.insert(ranks.end(), part.begin(), part.end());
        }
      else
        ranks = strided(first + slice, dp, tp);
      RankLists parts;
      for (auto part = ranks.begin(); part != ranks.end(); part += ep) parts.emplace_back(part, part + ep);
      append(groups.expert_parallel, parts);
      for (std::size_t i = 0; i < static_cast<std::size_t>(ep); ++i) {
        RankList& replicated = groups.expert_data_parallel.emplace_back();
        for (const RankList& part : parts) replicated.push_back(part[i]);
      }
    }
  return groups;
}

}  // namespace lockstep::plan
