// Frames of printed stacks, and the user's frame behind the one that is told.
#include "read/log_stacks.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

std::string told(std::string_view line) {
  const auto frame = frame_of_line(line);
  return frame ? frame_text(*frame) : "";
}

std::string user_frame_behind(std::string_view line, std::optional<std::int32_t> rank, std::string_view behind) {
  std::size_t budget = 100;
  return lockstep::user_frame_behind(line, rank, behind, budget);
}

TEST(FrameOfLine, ReadsWhatPySpyFaulthandlerAndGdbPrint) {
  EXPECT_EQ(told("    barrier (torch/distributed/distributed_c10d.py:4083)"), "barrier (torch/distributed/distributed_c10d.py:4083)");
  EXPECT_EQ(told("  File \"/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py\", line 4083 in barrier"),
            "barrier (torch/distributed/distributed_c10d.py:4083)");
  EXPECT_EQ(told("#4  0x00007f57b7aa5c19 in PMPI_Bcast (buffer=0x7f, count=1) at pbcast.c:114"), "PMPI_Bcast (pbcast.c:114)");
  EXPECT_EQ(told("rank 1: #5 PMPI_Barrier (comm=0x2) at pbarrier.c:74"), "PMPI_Barrier (pbarrier.c:74)");
  EXPECT_EQ(told("#2  0x00007f1d0b117c3e in ncclAllReduce (sendbuff=<optimized out>, recvbuff=<optimized out>, "), "ncclAllReduce");
}

TEST(FrameOfLine, IsNothingForOtherText) {
  for (const std::string_view line : {"", "iteration 7 (of 90)", "Thread 4711 (idle): \"MainThread\"", "    x = f(y)"}) EXPECT_EQ(told(line), "") << line;
}

TEST(UserFrameBehind, PassesOverFrameworksAndWhatOnlyPassesACallOn) {
  const std::string_view line = "    all_reduce (torch/distributed/distributed_c10d.py:2806)";
  EXPECT_EQ(user_frame_behind(line, {}, "    wrapper (torch/distributed/c10d_logger.py:81)\n    inner (contextlib.py:81)\n    clip (train.py:61)\n    main (train.py:140)\n"),
            "train.py:61 in clip");
  EXPECT_EQ(user_frame_behind(line, {}, "    <module> (train.py:90)\n"), "train.py:90");
  // No frame of the user: the nearest framework's.
  EXPECT_EQ(user_frame_behind(line, {}, "    wrapper (torch/distributed/c10d_logger.py:81)\n    step (deepspeed/runtime/engine.py:2100)\n"), "engine.py:2100 in step");
}

TEST(UserFrameBehind, StaysInTheStackAndInTheRank) {
  const std::string_view line = "  File \"/x/site-packages/torch/distributed/distributed_c10d.py\", line 4083 in barrier";
  EXPECT_EQ(user_frame_behind(line, {}, "\n    step (train.py:40)\n"), "");
  EXPECT_EQ(user_frame_behind(line, {}, "Thread 2 (idle): \"loader\"\n    load (data.py:7)\n"), "");
  EXPECT_EQ(user_frame_behind(line, 0, "[rank1]:   File \"/home/u/other.py\", line 3 in f\n[rank0]:   File \"/home/u/train.py\", line 101 in validate\n"),
            "train.py:101 in validate");
  EXPECT_EQ(user_frame_behind("rank 0: #5 PMPI_Bcast () at pbcast.c:114", {}, "rank 1: #6 step () at a.c:1\nrank 0: #6 step () at b.c:2\n"), "b.c:2 in step");
}

TEST(UserFrameBehind, LooksNoFurtherThanItsBudget) {
  std::size_t budget = 1;
  const std::string_view behind = "    wrapper (torch/distributed/c10d_logger.py:81)\n    clip (train.py:61)\n";
  EXPECT_EQ(lockstep::user_frame_behind("    barrier (torch/distributed/distributed_c10d.py:1)", {}, behind, budget), "");
  EXPECT_EQ(budget, 0U);
}

TEST(UserFrameBehind, DoesNotReadTracebacksOfExceptions) {
  EXPECT_EQ(user_frame_behind("  File \"/x/site-packages/torch/distributed/distributed_c10d.py\", line 1906, in broadcast", {},
                              "  File \"/home/u/train.py\", line 3, in f\n"),
            "");
}

}  // namespace
}  // namespace lockstep
