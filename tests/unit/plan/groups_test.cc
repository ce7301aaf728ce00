// Process groups: a few real layouts; whole tables of real values are in tests/plan.
#include <gtest/gtest.h>

#include "plan/deepspeed_groups.h"
#include "plan/device_mesh.h"
#include "plan/megatron_groups.h"

namespace lockstep::plan {
namespace {

RankLists groups_named(const std::vector<NewGroup>& groups, std::string_view name) {
  RankLists lists;
  for (const NewGroup& group : groups)
    if (group.name == name) lists.push_back(group.ranks);
  return lists;
}

TEST(MegatronGroups, ExpertGroupsAreNoSlicesOfDataGroups) {
  const auto groups = megatron_groups({.world = 16,
                                       .tensor = 2,
                                       .pipeline = 2,
                                       .context = 2,
                                       .expert = 4,
                                       .expert_tensor = 1,
                                       .gloo = false});
  ASSERT_TRUE(groups);
  EXPECT_EQ(groups_named(*groups, "DATA_PARALLEL_GROUP")[0], (RankList{0, 4}));
  EXPECT_EQ(groups_named(*groups, "DATA_PARALLEL_GROUP_WITH_CP")[0], (RankList{0, 2, 4, 6}));
  EXPECT_EQ(groups_named(*groups, "EXPERT_MODEL_PARALLEL_GROUP")[0], (RankList{0, 1, 2, 3}));
}

TEST(MegatronGroups, RefusesInMegatronsWords) {
  const auto groups =
      megatron_groups({.world = 16, .tensor = 2, .pipeline = 2, .expert = 2, .order = "tp-cp-pp-ep-dp"});
  ASSERT_FALSE(groups);
  EXPECT_EQ(
      groups.error().message,
      "AssertionError: When not using pp-last rank ordering, the data parallel size of the attention and "
      "moe layers must be the same");
  EXPECT_EQ(megatron_groups({.world = 8, .tensor = 3}).error().message,
            "RuntimeError: world_size (8) is not divisible by 3");
}

TEST(MegatronGroups, HostileSizesAreErrors) {
  EXPECT_FALSE(megatron_groups({.world = std::int64_t{1} << 62, .tensor = 1}));
  EXPECT_FALSE(megatron_groups({.world = 8, .tensor = 0}));
  EXPECT_FALSE(
      megatron_groups({.world = 1 << 20, .tensor = 1 << 20, .pipeline = 1 << 20, .context = 1 << 20}));
  EXPECT_FALSE(megatron_groups({.world = 8, .order = "tp-tp-xx"}));
}

TEST(DeepSpeedGrid, ModelGroupsSpanStagesAndSlices) {
  const auto grid = deepspeed_grid({2, 2, 2});
  ASSERT_TRUE(grid);
  EXPECT_EQ(grid->model, (RankLists{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(grid->slice, (RankLists{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(grid->p2p[7], (RankList{7, 3}));
}

TEST(DeepSpeedGroups, RefusesWhatDoesNotDivide) {
  EXPECT_EQ(hpz_groups(12, 8).error().message, "AssertionError: 12 is not divisible by 8");
  EXPECT_FALSE(mics_creation_order(*mics_groups(16, 8, 8), true));
  EXPECT_FALSE(expert_groups(8, 1, 0, false));
}

TEST(DeviceMesh, GroupsAreNotInTheOrderOfTheirFirstRanks) {
  EXPECT_EQ(*mesh_groups({{"pp", 2}, {"dp", 2}, {"tp", 2}}, 0), (RankLists{{0, 4}, {2, 6}, {1, 5}, {3, 7}}));
  // From torch 2.10 on they are.
  EXPECT_EQ(*mesh_groups({{"pp", 2}, {"dp", 2}, {"tp", 2}}, 0, true), (RankLists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_FALSE(titan_meshes({.world = 8, .tp = 3}));
  // In the words of torchtitan's parallel_dims.py.
  EXPECT_EQ(titan_meshes({.world = 8, .tp = 2, .ep = 3}).error().message,
            "ValueError: expert_parallel_degree (3) must divide dp_shard * cp * tp (8)");
  EXPECT_EQ(titan_meshes({.world = 8, .dp_shard = 0}).error().message, "AssertionError: dp_shard must -1 or >=1.");
  EXPECT_EQ(titan_meshes({.world = 8, .cp = 0}).error().message,
            "AssertionError: Parallelism degree should be >= 1, except for dp_shard");
  EXPECT_EQ(titan_meshes({.world = 2, .pp = 2, .tp = 2}).error().message, "AssertionError: ");  // nothing remains for dp_shard
}

}  // namespace
}  // namespace lockstep::plan
