// Gradient buckets; whole tables of real values are in tests/plan.
#include "plan/buckets.h"

#include <gtest/gtest.h>

namespace lockstep::plan {
namespace {

std::vector<std::vector<std::size_t>> tensors_of(const std::vector<DdpBucket>& buckets) {
  std::vector<std::vector<std::size_t>> lists;
  for (const DdpBucket& bucket : buckets) lists.push_back(bucket.tensors);
  return lists;
}

TEST(DdpBuckets, TheFirstIterationHasOneBucketAndTheSecondIsRebuilt) {
  const std::vector<DdpTensor> tensors{{1 << 20, 0}, {2048, 0}, {1 << 20, 0}, {2048, 0}};
  const std::vector<std::size_t> ready{3, 2, 1, 0};
  const DdpOptions options{.cap_bytes = 2 << 20};
  EXPECT_EQ(tensors_of(ddp_buckets(tensors, ready, options, 0)),
            (std::vector<std::vector<std::size_t>>{{0, 1, 2, 3}}));
  EXPECT_EQ(tensors_of(ddp_buckets(tensors, ready, options, 1)),
            (std::vector<std::vector<std::size_t>>{{3, 2}, {1, 0}}));
  EXPECT_EQ(ddp_rebuild_iteration({.find_unused = true}), std::nullopt);
  EXPECT_EQ(ddp_rebuild_iteration({.static_graph = true}), 2);
}

TEST(DdpBuckets, KnowTheBytesOfTorchsDatatypes) {
  EXPECT_EQ(element_bytes("complex128"), 16u);
  EXPECT_EQ(element_bytes("float8_e4m3fn"), 1u);
  EXPECT_EQ(element_bytes("uint16"), 2u);
  EXPECT_EQ(element_bytes("float7"), std::nullopt);
}

TEST(DdpBuckets, DatatypesDoNotShareABucket) {
  const std::vector<DdpTensor> tensors{{10, 0}, {10, 1}, {10, 0}};
  const std::vector<std::uint64_t> limits{100};
  EXPECT_EQ(tensors_of(assign_ddp_buckets(tensors, limits, false)),
            (std::vector<std::vector<std::size_t>>{{0, 2}, {1}}));
}

TEST(MegatronBuckets, ASharedEmbeddingHasItsOwnBucketWithTheDistributedOptimizer) {
  const std::vector<MegatronTensor> tensors{{1000, true}, {500}, {500}};
  MegatronBucketOptions options{.distributed_optimizer = true, .data_parallel = 3};
  const auto buckets = megatron_buckets(tensors, options);
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].end % 384, 0U);
  options.distributed_optimizer = false;
  EXPECT_EQ(megatron_buckets(tensors, options).size(), 1U);
}

TEST(ZeroBuckets, FlushBeforeWhatWouldNotFit) {
  const std::vector<std::uint64_t> elements{6, 6, 20, 1};
  EXPECT_EQ(zero_reduce_buckets(elements, 10), (std::vector<std::uint64_t>{6, 6, 20, 1}));
  EXPECT_EQ(zero0_buckets(elements, 10), (std::vector<std::uint64_t>{12, 20, 1}));
  EXPECT_EQ(zero_padded_elements(7, 2), 8U);
}

}  // namespace
}  // namespace lockstep::plan
