// Programs of NCCL on the stand-in, recorded: what stands in their traces, and what `lockstep check` makes of it.
#include <gtest/gtest.h>

#include "recorded.h"

namespace lockstep::shim_test {
namespace {

TEST(NcclRecording, CollectivesAreRecordedWithWhatMustAgree) {
  const Recorded recorded("collectives", 3);
  ASSERT_EQ(recorded.run.status, 0) << recorded.run.err;
  ASSERT_EQ(recorded.traces.size(), 3U);
  for (const ReadTrace& trace : recorded.traces) {
    EXPECT_EQ(trace.library.substr(0, 7), "NCCL 2.");
    ASSERT_EQ(trace.comms.size(), 1U);
    EXPECT_EQ(trace.comms.at(1).record.identity, recorded.traces[0].comms.at(1).record.identity);
    EXPECT_EQ(trace.comms.at(1).record.nranks, 3);
    EXPECT_EQ(trace.comm_ends.at(1).fingerprint, recorded.traces[0].comm_ends.at(1).fingerprint);
    EXPECT_EQ(count(trace, OpKind::kBroadcast), 3U);  // one of them refused; ncclBcast is one, not two
    const auto reduces = calls_of(trace, OpKind::kAllReduce);
    ASSERT_EQ(reduces.size(), 3U);
    EXPECT_EQ(trace.redops.at(reduces[1]->record.redop).first, "premul_sum(f32,host)");
    EXPECT_EQ(trace.datatypes.at(reduces[0]->record.datatype).first, "ncclFloat32");
    EXPECT_EQ(reduces[0]->record.count, 100U);
    EXPECT_TRUE(reduces[0]->has_issue);
    EXPECT_NE(reduces[0]->issue.stream, 0U);
  }
  EXPECT_EQ(recorded.check().status, 0) << recorded.check().out;
}

TEST(NcclRecording, GroupsAreNumberedAndMessagesHaveFingerprints) {
  const Recorded recorded("ring", 3);
  ASSERT_EQ(recorded.run.status, 0) << recorded.run.err;
  ASSERT_EQ(recorded.traces.size(), 3U);
  const auto sends = calls_of(recorded.traces[0], OpKind::kSend);
  const auto receives = calls_of(recorded.traces[1], OpKind::kRecv);
  ASSERT_EQ(sends.size(), 3U);
  ASSERT_EQ(receives.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sends[i]->record.seq, i);
    EXPECT_EQ(sends[i]->issue.launch, i + 1);
    // What rank 0 sent to rank 1 is what rank 1 received from it.
    EXPECT_EQ(sends[i]->record.detail, receives[i]->record.detail);
  }
  EXPECT_EQ(recorded.check().status, 0) << recorded.check().out;
}

TEST(NcclRecording, SplitsAreNamedByParentAndColour) {
  const Recorded recorded("split", 4);
  ASSERT_EQ(recorded.run.status, 0) << recorded.run.err;
  ASSERT_EQ(recorded.traces.size(), 4U);
  const auto half = [&](std::size_t rank) { return recorded.traces[rank].comms.at(2).record; };
  EXPECT_EQ(half(0).identity, half(2).identity);
  EXPECT_EQ(half(1).identity, half(3).identity);
  EXPECT_NE(half(0).identity, half(1).identity);
  EXPECT_EQ(half(0).parent, 1U);
  EXPECT_EQ(half(0).rank, 1);  // the keys turn the order round
  EXPECT_EQ(half(2).rank, 0);
  EXPECT_EQ(recorded.traces[0].comms.size(), 2U);  // it took part in the second split without a colour
  EXPECT_EQ(count(recorded.traces[0], OpKind::kSplit), 2U);
  EXPECT_EQ(recorded.traces[3].comms.at(3).record.nranks, 3);
  EXPECT_EQ(recorded.check().status, 0) << recorded.check().out;
}

TEST(NcclRecording, HostWaitsAreRecordedWhereThereIsSomethingToWaitFor) {
  const Recorded recorded("waits", 2);
  ASSERT_EQ(recorded.run.status, 0) << recorded.run.err;
  const ReadTrace& trace = recorded.traces.at(0);
  EXPECT_EQ(count(trace, OpKind::kStreamSync), 2U);
  EXPECT_EQ(count(trace, OpKind::kEventRecord), 2U);
  EXPECT_EQ(count(trace, OpKind::kEventSync), 1U);
  EXPECT_EQ(count(trace, OpKind::kStreamWait), 1U);
  EXPECT_EQ(count(trace, OpKind::kDeviceSync), 1U);
  EXPECT_EQ(recorded.check().status, 0) << recorded.check().out;
  // What the host has waited for is complete; nothing else is known to be.
  const HostRun job = run_host({LOCKSTEP_COMMAND, "show", "--format", "job", recorded.directory.path() + "/trace"});
  EXPECT_EQ(job.out.find("state=enqueued"), std::string::npos) << job.out;
}

TEST(NcclRecording, HostWaitsCanBeTurnedOff) {
  const Recorded recorded("waits", 2, {{"LOCKSTEP_HOST_WAITS", "0"}});
  ASSERT_EQ(recorded.run.status, 0) << recorded.run.err;
  const ReadTrace& trace = recorded.traces.at(0);
  for (const OpKind kind : {OpKind::kStreamSync, OpKind::kEventRecord, OpKind::kEventSync, OpKind::kStreamWait, OpKind::kDeviceSync}) {
    EXPECT_EQ(count(trace, kind), 0U) << op_name(kind);
  }
  EXPECT_EQ(count(trace, OpKind::kAllReduce), 4U);
}

TEST(NcclRecording, CapturedCallsAndGraphLaunchesBelongTogether) {
  const Recorded recorded("graph", 2);
  ASSERT_EQ(recorded.run.status, 0) << recorded.run.err;
  const ReadTrace& trace = recorded.traces.at(0);
  const auto reduces = calls_of(trace, OpKind::kAllReduce);
  const auto launches = calls_of(trace, OpKind::kGraphLaunch);
  ASSERT_EQ(reduces.size(), 3U);
  ASSERT_EQ(launches.size(), 3U);
  EXPECT_NE(reduces[0]->issue.capture, 0U);
  EXPECT_EQ(reduces[1]->issue.capture, reduces[0]->issue.capture);
  EXPECT_EQ(reduces[2]->issue.capture, 0U);
  for (const ReadCall* launch : launches) EXPECT_EQ(launch->issue.capture, reduces[0]->issue.capture);
  EXPECT_EQ(recorded.check().status, 0) << recorded.check().out;
}

TEST(NcclRecording, ProcessOfSeveralDevicesIsSeveralRanks) {
  const Recorded recorded("init_all", 3);
  ASSERT_EQ(recorded.run.status, 0) << recorded.run.err;
  ASSERT_EQ(recorded.traces.size(), 1U);
  EXPECT_EQ(recorded.traces[0].comms.size(), 3U);
  const HostRun check = recorded.check();
  EXPECT_EQ(check.status, 0) << check.out;
  EXPECT_NE(check.out.find("3 ranks"), std::string::npos) << check.out;
}

TEST(NcclRecording, ThreadThatWaitsBetweenItsDevicesStandsForGood) {
  const Recorded recorded("init_all_one_by_one", 3);
  ASSERT_EQ(recorded.traces.size(), 1U) << recorded.run.err;
  const HostRun check = recorded.check();
  EXPECT_EQ(check.status, 1) << check.out;
  EXPECT_NE(check.out.find("DEADLOCK  the thread that drives ranks 0-2 waits on rank 0"), std::string::npos) << check.out;
}

TEST(NcclRecording, ThreadThatWaitsForOneDeviceDoesNotSpeakForTheOthers) {
  const Recorded recorded("init_all_by_threads", 2);
  ASSERT_EQ(recorded.traces.size(), 1U) << recorded.run.err;
  EXPECT_EQ(recorded.check().status, 5) << recorded.check().out;  // what the other thread does, nobody has seen
}

TEST(NcclRecording, CommunicatorsMadeInAGroupAreKnownByTheirHandles) {
  const Recorded recorded("grouped_init", 3);
  ASSERT_EQ(recorded.run.status, 0) << recorded.run.err;
  ASSERT_EQ(recorded.traces.size(), 1U);
  const auto reduces = calls_of(recorded.traces[0], OpKind::kAllReduce);
  ASSERT_EQ(reduces.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(reduces[i]->record.comm, i + 1);
  const HostRun check = recorded.check();
  EXPECT_EQ(check.status, 0) << check.out;
  EXPECT_NE(check.out.find("3 ranks"), std::string::npos) << check.out;
}

TEST(NcclRecording, CommunicatorsThatDoNotBlockAreKnownWhenTheyAreUsed) {
  const Recorded recorded("non_blocking", 2);
  ASSERT_EQ(recorded.run.status, 0) << recorded.run.err;
  ASSERT_EQ(recorded.traces.size(), 2U);
  const ReadTrace& trace = recorded.traces[1];
  EXPECT_EQ(trace.comms.at(1).name, "patient");
  EXPECT_EQ(trace.comms.at(2).record.rank, 1);
  EXPECT_EQ(trace.comms.at(2).record.nranks, 2);
  const auto init = calls_of(trace, OpKind::kInit);
  ASSERT_EQ(init.size(), 1U);
  EXPECT_EQ(init[0]->creation.blocking, 2);
  EXPECT_EQ(recorded.check().status, 0) << recorded.check().out;
}

TEST(NcclRecording, SkippedCallIsFoundAfterTheRanksWereKilled) {
  const Recorded recorded("skipped", 4);
  EXPECT_EQ(recorded.run.status, 3) << recorded.run.err;
  const HostRun check = recorded.check();
  EXPECT_EQ(check.status, 1) << check.out;
  EXPECT_NE(check.out.find("rank 1"), std::string::npos) << check.out;
  EXPECT_NE(check.out.find("#2"), std::string::npos) << check.out;
}

TEST(NcclRecording, RankThatNeverMakesTheCommunicatorIsNamed) {
  const Recorded recorded("absent", 3);
  EXPECT_EQ(recorded.run.status, 3) << recorded.run.err;
  // The absent one took its GPU, so it has a trace: without a call.
  ASSERT_EQ(recorded.traces.size(), 3U);
  EXPECT_TRUE(recorded.traces[2].calls.empty());
  const auto init = calls_of(recorded.traces[0], OpKind::kInit);
  ASSERT_EQ(init.size(), 1U);
  EXPECT_FALSE(init[0]->returned());
  EXPECT_EQ(init[0]->creation.members, 3);
  const HostRun check = recorded.check();
  EXPECT_NE(check.status, 0);
  EXPECT_NE(check.out.find("rank 2"), std::string::npos) << check.out;
}

TEST(NcclRecording, OldAndNewMembersOfAGrownCommunicatorAreOne) {
  const Recorded recorded("grown", 3);
  ASSERT_EQ(recorded.run.status, 0) << recorded.run.err;
  const HostRun check = recorded.check();
  EXPECT_EQ(check.status, 0) << check.out << check.err;
  const HostRun job = run_host({LOCKSTEP_COMMAND, "show", "--format", "job", recorded.directory.path() + "/trace"});
  EXPECT_NE(job.out.find(": [0,1,2]"), std::string::npos) << job.out;
}

TEST(NcclRecording, ShrinkIsACallOfThoseThatStay) {
  const Recorded recorded("shrunk", 4);
  ASSERT_EQ(recorded.run.status, 0) << recorded.run.err;
  const HostRun check = recorded.check();
  EXPECT_EQ(check.status, 0) << check.out << check.err;
}

TEST(NcclRecording, SurvivorThatDoesNotShrinkIsNamed) {
  const Recorded recorded("shrink_missed", 4);
  EXPECT_EQ(recorded.run.status, 3) << recorded.run.err;
  const HostRun check = recorded.check();
  EXPECT_EQ(check.status, 1) << check.out << check.err;
  EXPECT_NE(check.out.find("rank 2 does not take part"), std::string::npos) << check.out;
  EXPECT_NE(check.out.find("shrink #0"), std::string::npos) << check.out;
}

TEST(NcclRecording, GpuProcessesWithoutACallOfNcclAreReported) {
  const Recorded recorded("silent", 2);
  ASSERT_EQ(recorded.run.status, 0) << recorded.run.err;
  const HostRun check = recorded.check();
  EXPECT_EQ(check.status, 5) << check.out;
  EXPECT_NE(check.out.find("2 processes that took a GPU, and saw no call of NCCL"), std::string::npos) << check.out;
}

// vLLM's way: ctypes.CDLL("libnccl.so.2"), by name or by path.
class Opened : public testing::TestWithParam<std::string> {};
TEST_P(Opened, CallsThroughCtypesAreRecordedUnderTheAuditor) {
  const TemporaryDirectory directory;
  const std::vector<std::string> program = {PYTHON, CTYPES_USER, GetParam()};
  const HostRun plain = run_host(program, {.env = {{"LD_LIBRARY_PATH", STANDIN_DIR}}});
  ASSERT_EQ(plain.status, 0) << plain.err;
  std::vector<std::string> command = {LOCKSTEP_COMMAND, "run", "--dir", directory.path(), "--"};
  command.insert(command.end(), program.begin(), program.end());
  const HostRun run = run_host(command, {.env = {{"LD_LIBRARY_PATH", STANDIN_DIR}}});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, plain.out);
  EXPECT_EQ(run.err, plain.err);
  const std::vector<std::string> files = find_traces(directory.path());
  ASSERT_EQ(files.size(), 1U);
  const ReadTrace trace = read_trace(files[0]);
  EXPECT_EQ(count(trace, OpKind::kInit), 1U);
  EXPECT_EQ(count(trace, OpKind::kAllReduce), 3U);
  const HostRun doctor = run_host({LOCKSTEP_COMMAND, "doctor", "--", PYTHON, CTYPES_USER});
  EXPECT_NE(doctor.out.find("opens it by name"), std::string::npos) << doctor.out;
}
INSTANTIATE_TEST_SUITE_P(ByNameAndPath, Opened, testing::Values("libnccl.so.2", STANDIN_DIR "/libnccl.so.2"));

}  // namespace
}  // namespace lockstep::shim_test
