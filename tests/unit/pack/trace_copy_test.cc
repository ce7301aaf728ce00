#include "pack/trace_copy.h"

#include <gtest/gtest.h>

#include "lockstep/trace_record.h"
#include "unit/pack/small_trace.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

std::vector<std::uint64_t> block_numbers(const TraceCopy& copy) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& block : copy.blocks) {
    trace::BlockRecord record;
    std::memcpy(&record, block.data(), sizeof record);
    numbers.push_back(record.number);
  }
  return numbers;
}

using Numbers = std::vector<std::uint64_t>;

TEST(TraceCopy, TakesWhatWasCommitted) {
  const auto copy = copy_trace(SmallTrace{}.bytes(), "t", kAll);
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ(block_numbers(*copy), (Numbers{1, 2, 3}));
  EXPECT_EQ(copy->calls, 15U + 15U + 7U);
  EXPECT_EQ(copy->comm_entries.size(), 1U);
  EXPECT_EQ(copy->side_records.size(), 4U) << "process, module, note, unknown";
  EXPECT_EQ(copy->blocks[2].find_first_not_of('\0', 8 * 64), std::string::npos)
      << "nothing of the turn before";
}

TEST(TraceCopy, KeepsTheTailInWholeBlocks) {
  for (const auto& [tail, numbers] : std::vector<std::pair<std::uint64_t, Numbers>>{
           {0, {3}}, {1, {3}}, {7, {3}}, {8, {2, 3}}, {22, {2, 3}}, {23, {1, 2, 3}}, {kAll, {1, 2, 3}}}) {
    const auto copy = copy_trace(SmallTrace{}.bytes(), "t", tail);
    ASSERT_TRUE(copy);
    EXPECT_EQ(block_numbers(*copy), numbers) << tail;
  }
}

TEST(TraceCopy, KeepsTheNewestBlockOfEveryThread) {
  const auto copy = copy_trace(SmallTrace{.blocks = 5, .threads = 2}.bytes(), "t", 1);
  ASSERT_TRUE(copy);
  EXPECT_EQ(block_numbers(*copy), (Numbers{4, 5}));
}

TEST(TraceCopy, OfARingThatWrapped) {
  const auto copy = copy_trace(SmallTrace{.blocks = 21}.bytes(), "t", kAll);
  ASSERT_TRUE(copy);
  EXPECT_EQ(block_numbers(*copy), (Numbers{14, 15, 16, 17, 18, 19, 20, 21}));
}

TEST(TraceCopy, AssemblesToATraceThatCopiesToTheSame) {
  const auto first = copy_trace(SmallTrace{.blocks = 21}.bytes(), "t", 20);
  ASSERT_TRUE(first);
  const std::string bytes = assemble(*first);
  EXPECT_LT(bytes.size(), SmallTrace{}.bytes().size());
  const auto second = copy_trace(bytes, "t", kAll);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->blocks, first->blocks);
  EXPECT_EQ(second->side_records, first->side_records);
  EXPECT_EQ(second->comm_entries, first->comm_entries);
  EXPECT_EQ(assemble(*second), bytes);
}

TEST(TraceCopyDamage, IsAnErrorOrLessOfACopy) {
  const std::string whole = SmallTrace{}.bytes();
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += bytes < 4200 ? 61 : 997) {
    const auto copy = copy_trace(std::string_view(whole).substr(0, bytes), "t", kAll);
    if (bytes < trace::kHeaderBytes) {
      ASSERT_FALSE(copy) << bytes;
      EXPECT_EQ(copy.error().message, "t: too short for a trace");
    } else {
      ASSERT_TRUE(copy) << copy.error().message;
      EXPECT_LE(assemble(*copy).size(), whole.size() + trace::kBlockBytes);
      EXPECT_NE(copy->header.state & trace::kStateStopped, 0U) << "the last calls may be missing";
    }
  }
  for (std::size_t at = 8; at < 200; ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const auto copy = copy_trace(flipped, "t", kAll);
      const std::size_t bytes = copy ? assemble(*copy).size() : 0;
      EXPECT_LE(bytes, 2 * whole.size() + trace::kBlockBytes) << at;
    }
  }
}

TEST(TraceCopyDamage, SaysWhatItIs) {
  EXPECT_EQ(copy_trace(std::string(4096, '\0'), "t", kAll).error().message,
            "t: an empty trace: its process died while making it");
  EXPECT_EQ(copy_trace(std::string(4096, 'x'), "t", kAll).error().message, "t: not a trace of Lockstep");
  std::string future = SmallTrace{}.bytes();
  future[offsetof(trace::FileHeader, min_reader)] = 9;
  const auto copy = copy_trace(future, "t", kAll);
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(copy.error().message, "t: a trace of version 1, for readers from 9 on; this one knows 1");
}

}  // namespace
}  // namespace lockstep
