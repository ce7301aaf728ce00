// Rows of blocked ranks: merging and what a row says.
#include "report/operation_rows.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

// `groups` communicators named tp with 8 ranks each; every rank waits for the last one of its own.
Finding many_groups(std::int32_t groups) {
  Finding finding;
  for (std::int32_t group = 0; group < groups; ++group) {
    std::vector<std::int32_t> members;
    for (std::int32_t i = 0; i < 8; ++i) members.push_back(group * 8 + i);
    for (std::int32_t i = 0; i < 7; ++i) {
      OperationView operation{.rank = members[0] + i, .op = "all_gather", .communicator = "tp", .members = members, .seq = 4};
      finding.wait_for.push_back({.rank = operation.rank, .operation = operation, .waits_for = {members[7]}});
    }
  }
  return finding;
}

TEST(OperationRows, MergeRanksWithTheSameCallAndWait) {
  const auto rows = operation_rows(many_groups(2), 120);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].text, "ranks 0-6   all_gather  #4 on tp  [0-7]   wait for rank 7");
  EXPECT_EQ(rows[1].text, "ranks 8-14  all_gather  #4 on tp  [8-15]  wait for rank 15");
  EXPECT_EQ(rows[1].ranks, 7U);
}

TEST(OperationRows, MergeLikeNamedCommunicatorsWhenThereAreMany) {
  const auto rows = operation_rows(many_groups(512), 120);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].text, "ranks 0-6,8-14,.. 3584 in all  all_gather  #4 on tp  (512 of that name)  wait for ranks 7,15,..,4095");
}

TEST(OperationRows, SayWithWhomMessagesAreExchanged) {
  Finding finding;
  const auto add = [&finding](std::int32_t rank, std::string op, std::int32_t peer, std::vector<std::int32_t> waits) {
    OperationView operation{.rank = rank, .op = std::move(op), .communicator = "pp", .peer = peer};
    finding.wait_for.push_back({.rank = rank, .operation = operation, .waits_for = std::move(waits)});
  };
  add(0, "recv", 1, {1});
  add(1, "send", 2, {2});
  add(2, "recv", -2, {});
  const auto rows = operation_rows(finding, 120);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].text, "rank 0  recv from 1    on pp  waits for rank 1");
  EXPECT_EQ(rows[1].text, "rank 1  send to 2      on pp  waits for rank 2");
  EXPECT_EQ(rows[2].text, "rank 2  recv from any  on pp");
}

TEST(OperationRows, SayThatARingWaitsForItself) {
  Finding finding;
  for (std::int32_t rank = 0; rank < 64; ++rank) {
    OperationView operation{.rank = rank, .op = "recv", .communicator = "pp", .peer = (rank + 1) % 64};
    finding.wait_for.push_back({.rank = rank, .operation = operation, .waits_for = {(rank + 1) % 64}});
  }
  const auto rows = operation_rows(finding, 120);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].text, "ranks 0-63  recv  on pp  wait for each other");
}

TEST(OperationRows, SayOfSeveralRanksWhatIsSaidOfOne) {
  const auto text = [](std::int32_t ranks, const std::string& why) {
    Finding finding;
    for (std::int32_t rank = 0; rank < ranks; ++rank) finding.wait_for.push_back({.rank = rank, .operation = {.rank = rank}, .why = why});
    const auto rows = operation_rows(finding, 120);
    return rows.empty() ? std::string{} : rows.front().text;
  };
  EXPECT_EQ(text(1, "makes no further call"), "rank 0  makes no further call");
  EXPECT_EQ(text(3, "makes no further call; what became of it is not recorded"), "ranks 0-2  make no further call; what became of them is not recorded");
  EXPECT_EQ(text(3, "was killed by signal 9"), "ranks 0-2  were killed by signal 9");
  EXPECT_EQ(text(3, "has completed nothing on dp since #4"), "ranks 0-2  have completed nothing on dp since #4");
}

TEST(SiteText, ShowsFunctionPlaceCallerAndLabel) {
  EXPECT_EQ(site_text({{"a/b.py", "f", 3}, {"c.py", "g", 9}}, "group 1 of 2"), "f b.py:3 < g, group 1 of 2");
  EXPECT_EQ(site_text({{"", "f", 0}}, ""), "f");
  EXPECT_EQ(site_text({}, "tied weights"), "tied weights");
}

}  // namespace
}  // namespace lockstep
