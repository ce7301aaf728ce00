// What is rarely called, recorded: communicators that change their size or state, signals, threads, graphs that run often.
#include <gtest/gtest.h>

#include "recorded.h"

namespace lockstep::shim_test {
namespace {

std::string job_of(const Recorded& recorded) {
  return run_host({LOCKSTEP_COMMAND, "show", "--format", "job", recorded.directory.path() + "/trace"}).out;
}

void expect_consistent(const Recorded& recorded) {
  EXPECT_EQ(recorded.run.status, 0) << recorded.run.err;
  const HostRun check = recorded.check();
  EXPECT_EQ(check.status, 0) << check.out;
  EXPECT_EQ(check.out.substr(0, 10), "CONSISTENT") << check.out;
}

TEST(NcclChanges, AllIdsOfAScalableCommunicatorNameIt) {
  const Recorded recorded("scalable", 3);
  expect_consistent(recorded);
  ASSERT_EQ(recorded.traces.size(), 3U);
  for (const ReadTrace& trace : recorded.traces) {
    ASSERT_EQ(trace.comms.size(), 1U);
    EXPECT_NE(trace.comms.at(1).record.identity, 0U);
    EXPECT_EQ(trace.comms.at(1).record.identity, recorded.traces[0].comms.at(1).record.identity);
    EXPECT_EQ(count(trace, OpKind::kInit), 1U);
  }
}

TEST(NcclChanges, EveryShrinkMakesACommunicatorOfItsOwn) {
  const Recorded recorded("shrink", 3);
  expect_consistent(recorded);
  ASSERT_EQ(recorded.traces.size(), 3U);
  EXPECT_EQ(recorded.traces[2].comms.size(), 1U);  // was left out
  for (const std::uint32_t made : {2U, 3U}) {
    const auto& first = recorded.traces[0].comms.at(made).record;
    EXPECT_EQ(first.identity, recorded.traces[1].comms.at(made).record.identity);
    EXPECT_EQ(first.nranks, 2);
    EXPECT_EQ(first.parent, 1U);
  }
  EXPECT_NE(recorded.traces[0].comms.at(2).record.identity, recorded.traces[0].comms.at(3).record.identity);
  for (const ReadCall* call : calls_of(recorded.traces[0], OpKind::kShrink)) EXPECT_EQ(call->record.seq, trace::kNoPosition);
}

TEST(NcclChanges, OldAndNewMembersOfAGrownCommunicatorMeet) {
  const Recorded recorded("comes_later", 3);
  expect_consistent(recorded);
  const std::string job = job_of(recorded);
  EXPECT_NE(job.find("[0,1]"), std::string::npos) << job;
  EXPECT_NE(job.find("[0,1,2]"), std::string::npos) << job;
  for (const ReadTrace& trace : recorded.traces) EXPECT_EQ(count(trace, OpKind::kGrow), 1U);
}

TEST(NcclChanges, SignalsThatAreWaitedForAreNoFault) {
  const Recorded recorded("signals", 3);
  expect_consistent(recorded);
  ASSERT_EQ(recorded.traces.size(), 3U);
  for (const ReadTrace& trace : recorded.traces) {
    EXPECT_EQ(count(trace, OpKind::kWaitSignal), 3U);
    EXPECT_EQ(count(trace, OpKind::kSignal), 4U);
    ASSERT_EQ(count(trace, OpKind::kPutSignal), 4U);
    EXPECT_EQ(calls_of(trace, OpKind::kPutSignal).back()->record.result, 4) << "refused";
  }
}

TEST(NcclChanges, RankThatWaitsForASignalTooManyIsNamed) {
  const Recorded recorded("signals_missing", 2);
  EXPECT_EQ(recorded.run.status, 3) << recorded.run.err;
  const HostRun check = recorded.check();
  EXPECT_EQ(check.status, 1) << check.out;
  EXPECT_NE(check.out.find("rank 1 waits for 7 signals on comm0 [0,1], of which 6 are sent"), std::string::npos) << check.out;
}

TEST(NcclChanges, WaitsThroughTheDriverAreWaits) {
  const Recorded recorded("driver_waits", 2);
  expect_consistent(recorded);
  for (const ReadTrace& trace : recorded.traces) {
    EXPECT_EQ(count(trace, OpKind::kStreamSync), 2U);
    EXPECT_EQ(count(trace, OpKind::kEventRecord), 2U);
    EXPECT_EQ(count(trace, OpKind::kEventSync), 1U);
    EXPECT_EQ(count(trace, OpKind::kStreamWait), 1U);
    EXPECT_EQ(count(trace, OpKind::kDeviceSync), 2U);
    EXPECT_EQ(count(trace, OpKind::kGraphLaunch), 2U);
  }
}

TEST(NcclChanges, WaitsThroughTheDriverMakeADeadlockCertain) {
  const Recorded recorded("driver_waits_crossed", 2);
  EXPECT_EQ(recorded.run.status, 3) << recorded.run.err;
  const HostRun check = recorded.check();
  EXPECT_EQ(check.status, 1) << check.out;
  EXPECT_NE(check.out.find("ranks 0 and 1 wait for each other"), std::string::npos) << check.out;
  EXPECT_NE(check.out.find("certain"), std::string::npos) << check.out;
}

TEST(NcclChanges, SuspendAndResumeAreMeetingsOfAllMembers) {
  const Recorded recorded("suspended", 2);
  expect_consistent(recorded);
  for (const ReadTrace& trace : recorded.traces) {
    const auto calls = calls_of(trace, OpKind::kBarrier);
    ASSERT_EQ(calls.size(), 2U);
    EXPECT_EQ(calls[0]->record.seq, 2U);  // the making, a reduction
    EXPECT_EQ(calls[0]->name, "ncclCommSuspend");
    EXPECT_EQ(calls[1]->name, "ncclCommResume");
  }
}

TEST(NcclChanges, RankThatIsNotSuspendedIsNamed) {
  const Recorded recorded("half_suspended", 2);
  EXPECT_EQ(recorded.run.status, 3) << recorded.run.err;
  const HostRun check = recorded.check();
  EXPECT_EQ(check.status, 1) << check.out;
  EXPECT_NE(check.out.find("rank 1"), std::string::npos) << check.out;
}

TEST(NcclChanges, RevokedCommunicatorRefusesOnEveryRank) {
  const Recorded recorded("revoked", 2);
  expect_consistent(recorded);
  for (const ReadTrace& trace : recorded.traces) {
    EXPECT_EQ(count(trace, OpKind::kRevoke), 1U);
    EXPECT_EQ(count(trace, OpKind::kAbort), 1U);
    EXPECT_NE(calls_of(trace, OpKind::kAllReduce).at(1)->record.result, 0);
  }
}

TEST(NcclChanges, TwoThreadsOnOneCommunicatorAreReported) {
  const Recorded recorded("threads", 2);
  ASSERT_NE(recorded.run.status, 1) << recorded.run.err;
  EXPECT_NE(recorded.traces.at(0).comm_ends.at(1).flags & trace::kCommConcurrent, 0U);
  EXPECT_EQ(recorded.traces.at(1).comm_ends.at(1).flags & trace::kCommConcurrent, 0U);
  const HostRun check = recorded.check();
  EXPECT_NE(check.out.find("threads_share_communicator"), std::string::npos) << check.out;
}

TEST(NcclChanges, ReplaysOfSeveralGraphsCountOneByOne) {
  const Recorded recorded("replays", 2);
  expect_consistent(recorded);
  for (const ReadTrace& trace : recorded.traces) {
    EXPECT_EQ(count(trace, OpKind::kGraphLaunch), 6U);
    EXPECT_EQ(count(trace, OpKind::kAllReduce), 2U);
    EXPECT_EQ(count(trace, OpKind::kBroadcast), 1U);
  }
}

TEST(NcclChanges, LaunchThatIsLeftOutIsMissedAtItsPosition) {
  const Recorded recorded("fewer_replays", 2);
  EXPECT_EQ(recorded.run.status, 3) << recorded.run.err;
  const HostRun check = recorded.check();
  EXPECT_EQ(check.status, 1);
  // The making, three times two calls, two of the other graph: the third of those is the ninth.
  EXPECT_NE(check.out.find("rank 1 does not make all_reduce #9"), std::string::npos) << check.out;
}

TEST(NcclChanges, ThreadForEachDeviceIsARankForEachDevice) {
  const Recorded recorded("init_all_threads", 3);
  expect_consistent(recorded);
  ASSERT_EQ(recorded.traces.size(), 1U);
  EXPECT_EQ(recorded.traces[0].comms.size(), 3U);
  for (std::uint32_t comm = 1; comm <= 3; ++comm)
    EXPECT_EQ(recorded.traces[0].comm_ends.at(comm).flags & trace::kCommConcurrent, 0U);
}

}  // namespace
}  // namespace lockstep::shim_test
