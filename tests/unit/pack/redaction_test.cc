#include "pack/redaction.h"

#include <gtest/gtest.h>

#include "unit/pack/small_trace.h"

namespace lockstep {
namespace {

std::string redacted(const SmallTrace& trace, Redaction& redaction) {
  auto copy = copy_trace(trace.bytes(), "t", ~std::uint64_t{0});
  EXPECT_TRUE(copy);
  redaction.learn(*copy);
  redaction.apply(*copy);
  return assemble(*copy);
}

bool holds(const std::string& bytes, std::string_view text) { return bytes.find(text) != std::string::npos; }

TEST(Redaction, LeavesNoPathAndNoHost) {
  Redaction redaction(true, true);
  const std::string bytes = redacted({}, redaction);
  for (const char* name : {"home", "alice", "train", "lockstep-trace", "node3", "cluster", "login1", "notes"})
    EXPECT_FALSE(holds(bytes, name)) << name;
  EXPECT_TRUE(holds(bytes, "host1"));
  EXPECT_TRUE(holds(bytes, "run1.r2")) << "attempts stay";
  EXPECT_TRUE(copy_trace(bytes, "t", 1)) << "and it is a trace";
}

TEST(Redaction, GivesEqualNamesEqualTokens) {
  Redaction redaction(true, true);
  const std::string bytes = redacted({}, redaction);
  // The program, then the parts of /home/alice/run/lockstep-trace, then /home/alice/bin/train and
  // /home/alice/notes.
  EXPECT_TRUE(holds(bytes, "/path2/path3/path4/path5"));
  EXPECT_TRUE(holds(bytes, "/path2/path3/path6/path1"));
  EXPECT_TRUE(holds(bytes, "left at /path2/path3/path7 on host1"));
  EXPECT_TRUE(holds(redacted({.module = "/opt/home"}, redaction), "/path8/path2"));
}

TEST(Redaction, OfHostsKeepsPaths) {
  Redaction redaction(false, true);
  const std::string bytes = redacted(
      {.directory = "/scratch/node3/x", .note = "node3 node33 node3.cluster.example root@node9"}, redaction);
  EXPECT_TRUE(holds(bytes, "/home/alice/bin/train"));
  EXPECT_TRUE(holds(bytes, "/scratch/host1/x"));
  EXPECT_TRUE(holds(bytes, "host1 node33 host1 account"));
}

TEST(Redaction, OfPathsKeepsHosts) {
  Redaction redaction(true, false);
  const std::string bytes = redacted({}, redaction);
  EXPECT_TRUE(holds(bytes, "node3.cluster.example"));
  EXPECT_TRUE(holds(bytes, "hydra-login1_4711.r2"));
  EXPECT_FALSE(holds(bytes, "alice"));
}

TEST(Redaction, CountsHostsByName) {
  Redaction redaction(false, true);
  redaction.learn_host("b.example");
  auto copy = copy_trace(SmallTrace{.host = "a.example"}.bytes(), "t", 1);
  redaction.learn(*copy);
  auto other = copy_trace(SmallTrace{.host = "b.example"}.bytes(), "t", 1);
  redaction.apply(*other);
  redaction.apply(*copy);
  EXPECT_EQ(Redaction::member_name(*copy), "run1.r2/host1.0.0.lst");
  EXPECT_EQ(Redaction::member_name(*other), "run1.r2/host2.0.0.lst");
}

TEST(Redaction, OfNothingChangesNothing) {
  Redaction redaction(false, false);
  const auto copy = copy_trace(SmallTrace{}.bytes(), "t", ~std::uint64_t{0});
  EXPECT_EQ(redacted({}, redaction), assemble(*copy));
}

TEST(Redaction, DropsWhatItDoesNotKnow) {
  Redaction redaction(true, false);
  auto copy = copy_trace(SmallTrace{}.bytes(), "t", 1);
  redaction.apply(*copy);
  EXPECT_EQ(copy->side_records.size(), 3U);
  // Lengths inside of a record that do not fit into it.
  auto damaged = copy_trace(SmallTrace{}.bytes(), "t", 1);
  for (std::string& record : damaged->side_records)
    for (std::size_t i = 8; i < record.size() && i < 40; ++i) record[i] = '\xff';
  redaction.apply(*damaged);
  EXPECT_LE(damaged->side_records.size(), 3U);
}

}  // namespace
}  // namespace lockstep
