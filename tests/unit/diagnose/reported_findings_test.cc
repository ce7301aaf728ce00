// Logs from their lines to a verdict: what is proven, what is not.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/mapped_file.h"
#include "diagnose/diagnose.h"
#include "read/log_file.h"

namespace lockstep {
namespace {

Report judge(const std::string& text) {
  const std::string padded = text + std::string(MappedFile::kPaddingBytes, '\0');
  auto parsed = parse_log({.path = "job.log", .contents = {padded.data(), text.size()}});
  EXPECT_TRUE(parsed);
  std::vector<std::unique_ptr<ParsedEvidence>> logs;
  logs.push_back(*std::move(parsed));
  JobIntake intake;
  EXPECT_FALSE(join_logs(std::move(logs), intake).front());
  const ReportedEvidence reported = std::move(intake.reported());
  return diagnose(std::move(intake).finish(), std::nullopt, reported);
}

std::string wait(int rank, int seq, const std::string& op, int elements) {
  return fmt::format("[rank{0}]:[E101 00:00:00.000000000 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: "
                     "WorkNCCL(SeqNum={1}, OpType={2}, NumelIn={3}, NumelOut={3}, Timeout(ms)=600000) ran for 600009 milliseconds before timing out.\n",
                     rank, seq, op, elements);
}

std::string status(int rank, int seq, int enqueued, int completed, const std::string& group = "0(default_pg)") {
  return fmt::format("[rank{0}]:[E101 00:00:00.000000000 ProcessGroupNCCL.cpp:2271] [PG ID 0 PG GUID {4} Rank {0}]  failure detected by watchdog at "
                     "work sequence id: {1} PG status: last enqueued work: {2}, last completed work: {3}\n",
                     rank, seq, enqueued, completed, group);
}

struct LogCase {
  std::string name, text;
  Verdict verdict;
  std::vector<std::int32_t> ranks{};
  friend void PrintTo(const LogCase& log, std::ostream* out) { *out << log.name; }
};

class ReportedFindings : public testing::TestWithParam<LogCase> {};

TEST_P(ReportedFindings, SayWhatTheLinesProve) {
  const Report report = judge(GetParam().text);
  EXPECT_EQ(verdict_name(report.verdict), verdict_name(GetParam().verdict));
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings.front().divergent_ranks, GetParam().ranks);
  if (report.verdict == Verdict::kInsufficient) {
    EXPECT_FALSE(report.next_evidence.empty());
  }
}

const std::string kFingerprints =
    "Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=4, OpType=BROADCAST), "
    "but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=4, OpType=ALLREDUCE).";

INSTANTIATE_TEST_SUITE_P(Table, ReportedFindings, testing::ValuesIn<LogCase>({
    {"NothingTold", "step 1\nstep 2\n", Verdict::kInsufficient},
    {"OneRankAlone", wait(2, 7, "ALLREDUCE", 8), Verdict::kInsufficient},
    {"AllEqual", wait(0, 7, "ALLREDUCE", 8) + wait(1, 7, "ALLREDUCE", 8), Verdict::kInsufficient},
    {"OneSizeDiffers", wait(0, 7, "ALLREDUCE", 8) + wait(1, 7, "ALLREDUCE", 8) + wait(2, 7, "ALLREDUCE", 9), Verdict::kMismatch, {2}},
    {"SizesOfAllToAllAreFree", wait(0, 7, "ALLTOALL_BASE", 8) + wait(1, 7, "ALLTOALL_BASE", 9), Verdict::kInsufficient},
    {"OtherOperationInANamedGroup", wait(0, 7, "ALLREDUCE", 8) + status(0, 7, 9, 6) + wait(1, 7, "BROADCAST", 8) + status(1, 7, 9, 6), Verdict::kMismatch, {0, 1}},
    {"SmallEqualNumbersOfUnnamedGroupsMayBeChance", wait(0, 7, "ALLREDUCE", 8) + wait(1, 7, "BROADCAST", 8), Verdict::kInsufficient},
    {"NumbersOfDifferentGroupsAreNotCompared", wait(0, 216, "ALLTOALL_BASE", 8) + status(0, 216, 220, 215, "119") + wait(1, 57, "ALLREDUCE", 8) + status(1, 57, 57, 56, "112"), Verdict::kInsufficient},
    {"OneCallApartIsNormal", wait(0, 7, "ALLREDUCE", 8) + status(0, 7, 12, 6) + wait(1, 8, "ALLREDUCE", 8) + status(1, 7, 12, 6), Verdict::kInsufficient},
    {"MessagesHaveNumbersOfTheirOwn", wait(0, 7, "SEND", 8) + status(0, 7, 9, 6) + wait(1, 7, "RECV", 8) + status(1, 7, 12, 6), Verdict::kInsufficient},
    {"AProgressBarOfAWaitingRankIsNoPause", "[rank0]: 45%|####     | 45/100\n" + wait(0, 7, "ALLREDUCE", 8), Verdict::kInsufficient},
    {"ACheckpointIsAPause", "INFO Saving checkpoint to /data\n" + wait(0, 7, "ALLREDUCE", 8), Verdict::kOtherCause},
    {"NeverEnqueued", wait(0, 7, "ALLREDUCE", 8) + status(0, 7, 9, 6) + "facts: rank 1: last enqueued 6, last completed 6\n", Verdict::kImbalance, {1}},
    {"WrapperMismatch", "\x1b[31m[rank1]: RuntimeError: " + kFingerprints + "\x1b[0m\r\n", Verdict::kMismatch, {0, 1}},
    {"WrapperMismatchOverLines", "Rank 0 is running collective: SequenceNumber=5, OpType=BROADCAST\nRank 1 is running collective: OpType=REDUCE\n", Verdict::kMismatch, {0, 1}},
    {"GlooReceivesMoreThanItHasRoomFor", "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:464] "
     "op.preamble.length <= op.nbytes. 48 vs 32. Received data size doesn't match expected size.\n[rank1]: RuntimeError: [gloo/transport/tcp/pair.cc:545] Read error [10.0.0.1]:50001: Connection reset by peer.\n", Verdict::kMismatch},
    {"GlooThatCannotConnectDecidesNothing", "[rank1]: RuntimeError: Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:144] no error\n", Verdict::kInsufficient},
    {"BoilerplateIsNoEvidence", "This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks\n", Verdict::kInsufficient},
    {"NcclWarningIsWeak", "node:1:1 [0] init.cc:1259 NCCL WARN Your program may be hanging, this may be caused by a collective mismatch around rank 3.\n", Verdict::kInsufficient},
    {"OutOfMemoryComesFirst", wait(0, 7, "ALLREDUCE", 8) + "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n", Verdict::kOtherCause, {1}},
    {"ExceptionOnOneRank", wait(0, 7, "ALLREDUCE", 8) + "[rank1]: KeyError: 'labels'\n", Verdict::kOtherCause, {1}},
    {"ExceptionAboutCommunicationIsAConsequence", wait(0, 7, "ALLREDUCE", 8) + "[rank0]: torch.distributed.DistBackendError: NCCL communicator was aborted\n", Verdict::kInsufficient},
    {"KilledBySignal9", "  rank      : 5 (local_rank: 1)\n  exitcode  : -9 (pid: 77)\n", Verdict::kOtherCause, {5}},
    {"AbortByTheWatchdogDecidesNothing", "  rank      : 5 (local_rank: 1)\n  exitcode  : -6 (pid: 77)\n", Verdict::kInsufficient},
    {"DriverError", "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n", Verdict::kOtherCause},
    {"MonitoredBarrier", "[Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in 2000 ms\n", Verdict::kImbalance, {4, 5}},
    {"HorovodMissingRanks", "Stalled ops:grad_a [missing ranks: 1]\n", Verdict::kImbalance, {1}},
    {"HorovodReadyRanks", "Stalled ops: grad_a [ready ranks: 0, 1, 3]\n", Verdict::kImbalance, {2}},
    {"HorovodBranches", "Missing ranks:\n0: [grad_a, grad_b]\n1: [grad_c]\n", Verdict::kMismatch, {0, 1}},
    {"StacksInDifferentCalls", "rank 0: barrier <- save <- train\nrank 1: all_reduce <- step <- train\nrank 2: all_reduce <- step <- train\n", Verdict::kMismatch, {0}},
    {"PrintedScheduleThatDeadlocks", "rank 0: [0SEND_F1, 0RECV_B0]\nrank 1: [1SEND_B0, 1RECV_F1]\n", Verdict::kDeadlock, {0, 1}},
}), [](const auto& test) { return test.param.name; });

TEST(ReportedFindings, EvidenceHasFileAndLine) {
  const Report report = judge("start\n\n" + wait(0, 7, "ALLREDUCE", 8) + "x\n" + wait(1, 7, "ALLREDUCE", 9));
  ASSERT_EQ(report.findings.front().evidence.size(), 2U);
  EXPECT_EQ(report.findings.front().evidence[0].line, 3U);
  EXPECT_EQ(report.findings.front().evidence[1].line, 5U);
}

TEST(ReportedFindings, ALineOfManyMegabytesIsReadAroundWhatItSays) {
  const Report report = judge(std::string(10'000'000, 'x') + " " + wait(0, 7, "ALLREDUCE", 8) + wait(1, 7, "ALLREDUCE", 9));
  EXPECT_EQ(report.verdict, Verdict::kMismatch);
}

const std::string kXid = "Jul 02 03:10:11 gpu-07 kernel: NVRM: Xid (PCI:0000:4b:00): 79, pid=31337, GPU has fallen off the bus.\n";
const std::string kInits =
    "gpu-07:900:990 [0] NCCL INFO ncclCommInitRank comm 0xa rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x5a - Init COMPLETE\n"
    "gpu-08:901:991 [1] NCCL INFO ncclCommInitRank comm 0xb rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 1b000 commId 0x5a - Init COMPLETE\n";

TEST(ReportedPlaces, AHostThatReportsADeviceFaultIsToBeInspectedWithItsRanks) {
  const Report report = judge(kInits + kXid + wait(1, 7, "ALLREDUCE", 8));
  EXPECT_EQ(report.action, Action::kInspectNodes);
  EXPECT_EQ(report.action_hosts, std::vector<std::string>{"gpu-07"});
  EXPECT_EQ(report.action_ranks, std::vector<std::int32_t>{0});
}

TEST(ReportedPlaces, ARankKilledForMemoryNamesItsHost) {
  const Report report = judge(kInits + "Nov  3 02:11:09 gpu-08 kernel: Out of memory: Killed process 901 (python3) total-vm:198kB\n");
  EXPECT_EQ(report.action, Action::kInspectNodes);
  EXPECT_EQ(report.action_hosts, std::vector<std::string>{"gpu-08"});
}

TEST(ReportedPlaces, AFaultOfTheProgramOrOfAPeerNamesNoNode) {
  for (const std::string& line : {std::string("[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"),
                                  std::string("[rank1]: KeyError: 'labels'\n"),
                                  std::string("Jul 02 03:10:11 gpu-07 kernel: NVRM: Xid (PCI:0000:4b:00): 31, pid=31337, MMU fault\n"),
                                  std::string("NET/IB : Got completion from peer 10.1.7.2<50000> with error 12, opcode 0, len 0, vendor err 129\n")}) {
    const Report report = judge(kInits + line);
    EXPECT_NE(report.action, Action::kInspectNodes) << line;
    EXPECT_TRUE(report.action_hosts.empty()) << line;
  }
}

TEST(ReportedPlaces, ADifferenceOfCallsNamesNoNodeWhateverElseIsInTheLog) {
  const Report report = judge(kInits + "[rank1]: RuntimeError: " + kFingerprints + "\n" + kXid);
  EXPECT_NE(report.verdict, Verdict::kOtherCause);
  EXPECT_EQ(report.action, Action::kFixCode);
  EXPECT_TRUE(report.action_hosts.empty());
  EXPECT_TRUE(report.action_ranks.empty());
}

TEST(ReportedPlaces, SuspectsCarryHostProcessDeviceAndPod) {
  const Report report = judge(kInits + "[pod/trainer-1/main] [rank1]: KeyError: 'labels'\n");
  ASSERT_EQ(report.suspects.size(), 1U);
  const Suspect& suspect = report.suspects.front();
  EXPECT_EQ(suspect.rank, 1);
  EXPECT_EQ(suspect.pod, "trainer-1");
  EXPECT_EQ(suspect.place.host, "gpu-08");
  EXPECT_EQ(suspect.place.pid, 901);
  EXPECT_EQ(suspect.place.device, "GPU 1");
}

TEST(ReportedPlaces, LaunchCountsOfDifferentCommunicatorsAreNotCompared) {
  const Report report = judge("#0-0 (aa01) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"
                              "  7 ranks have launched up to operation 640\n  1 rank has launched up to operation 641\n"
                              "#1-0 (aa02) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
                              "  7 ranks have launched up to operation 12\n  1 rank has launched up to operation 13\n");
  EXPECT_EQ(verdict_name(report.verdict), verdict_name(Verdict::kInsufficient));
}

}  // namespace
}  // namespace lockstep
