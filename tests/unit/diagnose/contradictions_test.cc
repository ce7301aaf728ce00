// Flight Recorder dumps and a log as one job: what joins, what contradicts itself, and what only looks so.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "diagnose/diagnose.h"
#include "read/load.h"
#include "support/flight_writer.h"
#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

using lockstep::testing::FlightEntry;
using lockstep::testing::FlightWriter;

constexpr std::int64_t kTenthOfOctober = 1'760'090'000'000'000'000;  // 2025-10-10

FlightEntry call(std::int64_t seq, std::string state = "completed", std::string name = "nccl:all_reduce") {
  FlightEntry entry;
  entry.collective_seq = seq;
  entry.name = std::move(name);
  entry.retired = state == "completed";
  entry.state = std::move(state);
  entry.created_ns = kTenthOfOctober;
  entry.frames = {1};
  return entry;
}

std::string dump(const std::vector<FlightEntry>& entries, const std::vector<std::int32_t>& members = {0, 1, 2}, const std::string& description = "default_pg") {
  FlightWriter writer;
  writer.group("0", description, members);
  for (FlightEntry entry : entries) {
    entry.description = description;
    writer.entry(entry);
  }
  return writer.finish();
}

/// Calls 1 to `made`, of which the first `completed` completed.
std::string progress(std::int64_t made, std::int64_t completed, const std::vector<std::int32_t>& members = {0, 1, 2}) {
  std::vector<FlightEntry> entries;
  for (std::int64_t seq = 1; seq <= made; ++seq) entries.push_back(call(seq, seq <= completed ? "completed" : "scheduled"));
  return dump(entries, members);
}

std::string status(int rank, int stuck, int enqueued, int completed, std::string_view group = "0(default_pg)", std::string_view time = "E1010 10:00:00") {
  return fmt::format("[rank{0}]:[{5}.000000000 ProcessGroupNCCL.cpp:2271] [PG ID 0 PG GUID {4} Rank {0}]  failure detected by watchdog at work sequence id: {1} "
                     "PG status: last enqueued work: {2}, last completed work: {3}\n", rank, stuck, enqueued, completed, group, time);
}

std::string dump_signal(int rank, int enqueued, int completed) {
  return fmt::format("[rank{0}]:[E1010 10:00:00.000000000 ProcessGroupNCCL.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank {0}] Received a dump signal due to a collective timeout "
                     "from  rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: {1}, last completed NCCL work: {2}.\n", rank, enqueued, completed);
}

std::string wait(int rank, int seq, std::string_view op, int elements) {
  return fmt::format("[rank{0}]:[E1010 10:00:00.000000000 ProcessGroupNCCL.cpp:683] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1}, OpType={2}, "
                     "NumelIn={3}, NumelOut={3}, Timeout(ms)=600000) ran for 600009 milliseconds before timing out.\n", rank, seq, op, elements);
}

Report judge(const TextFiles& files) {
  static const TempDir dir;
  static int number = 0;
  const std::string folder = fmt::format("{}/case{}", dir.path(), number++);
  std::filesystem::create_directory(folder);
  for (const auto& [name, bytes] : files) std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
  const auto evidence = load_evidence(std::vector<std::string>{folder});
  EXPECT_TRUE(evidence) << evidence.error().message;
  return diagnose(evidence->job, std::nullopt, evidence->reported);
}

std::string contradiction_of(const Report& report) {
  for (const std::string& warning : report.input_quality.warnings) {
    if (warning.find("record") != std::string::npos || warning.find("not of one") != std::string::npos || warning.find("both seem") != std::string::npos ||
        warning.find("members [") != std::string::npos) {
      return warning;
    }
  }
  return {};
}

/// Rank 2 lacks calls 5 and 6 of the others.
TextFiles behind(const std::string& log) {
  return {{"rank_0", progress(6, 4)}, {"rank_1", progress(6, 4)}, {"rank_2", progress(4, 4)}, {"job.log", log}};
}

TEST(JoinedEvidence, ALogThatAgreesChangesNothing) {
  const Report report = judge(behind(wait(0, 5, "ALLREDUCE", 131072) + status(0, 5, 6, 4) + wait(1, 5, "ALLREDUCE", 131072) + status(1, 5, 6, 4) + dump_signal(2, 4, 4)));
  EXPECT_EQ(report.verdict, Verdict::kImbalance);
  EXPECT_EQ(report.findings.front().divergent_ranks, std::vector<std::int32_t>{2});
  EXPECT_EQ(contradiction_of(report), "");
}

TEST(JoinedEvidence, DumpsLaterThanTheLinesAreNormal) {
  const Report report = judge(behind(status(0, 5, 5, 4) + status(1, 5, 5, 3) + dump_signal(2, 3, 2)));
  EXPECT_EQ(report.verdict, Verdict::kImbalance);
  EXPECT_EQ(contradiction_of(report), "");
}

TEST(JoinedEvidence, ACallThatCompletedWhileTheWatchdogGaveItUpIsNormal) {
  EXPECT_EQ(contradiction_of(judge(behind(status(0, 4, 5, 3)))), "");
}

TEST(JoinedEvidence, NumbersThatWereNeverSetAreNoContradiction) {
  EXPECT_EQ(contradiction_of(judge(behind("[rank2]:[E ProcessGroupNCCL.cpp:1537] [PG 0 Rank 2] Timeout at NCCL work: 5, last enqueued NCCL work: 3452013982, last completed NCCL work: 3452013982.\n"))), "");
}

TEST(JoinedEvidence, GroupsOfOtherNamesAreNotCompared) {
  EXPECT_EQ(contradiction_of(judge(behind(status(2, 57, 57, 56, "12")))), "");
}

TEST(JoinedEvidence, ARankWithoutADumpIsNamedByItsLine) {
  const Report report = judge({{"rank_0", progress(6, 4)}, {"rank_1", progress(6, 4)}, {"job.log", status(0, 5, 6, 4) + dump_signal(2, 4, 4)}});
  EXPECT_EQ(report.verdict, Verdict::kImbalance);
  EXPECT_EQ(report.findings.front().finding_class, "never_arrived");
  EXPECT_EQ(report.findings.front().divergent_ranks, std::vector<std::int32_t>{2});
}

TEST(JoinedEvidence, ARankWithoutADumpThatHadEnqueuedTheCallIsNotAccused) {
  for (const std::string& line : {dump_signal(2, 5, 4), dump_signal(2, 4, 3)}) {
    const Report report = judge({{"rank_0", progress(6, 4)}, {"rank_1", progress(6, 4)}, {"job.log", status(0, 5, 6, 4) + line}});
    EXPECT_EQ(report.verdict, Verdict::kInsufficient) << line;
  }
}

/// As py-spy prints a rank that saves.
const std::string kSaves = "Process 4711: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\nThread 4711 (idle): \"MainThread\"\n"
                           "    save (torch/serialization.py:850)\n    save_checkpoint (train.py:210)\n    main (train.py:300)\n";

TEST(JoinedEvidence, AStackBesideDumpsSaysWhatTheMissedRankDoes) {
  const Report without_log = judge({{"rank_0", progress(6, 4)}, {"rank_1", progress(6, 4)}, {"stack_rank2.txt", kSaves}});
  EXPECT_EQ(without_log.verdict, Verdict::kInsufficient);
  EXPECT_NE(without_log.findings.front().explanation.find("the stack of rank 2 stands in save (torch/serialization.py:850)"), std::string::npos)
      << without_log.findings.front().explanation;
  // Faulthandler's words for it, told alike.
  const std::string by_faulthandler = "Thread 0x00007f11 (most recent call first):\n  File \"/v/site-packages/torch/serialization.py\", line 850 in save\n"
                                      "  File \"/home/me/train.py\", line 210 in save_checkpoint\n  File \"/home/me/train.py\", line 300 in main\n";
  for (const std::string& stack : {kSaves, by_faulthandler}) {
    const Report told = judge({{"rank_0", progress(6, 4)}, {"rank_1", progress(6, 4)}, {"stack_rank2.txt", stack}});
    EXPECT_NE(told.findings.front().explanation.find("the stack of rank 2 stands in save (torch/serialization.py:850), called at train.py:210 in save_checkpoint"),
              std::string::npos)
        << told.findings.front().explanation;
  }
  const Report with_log = judge({{"rank_0", progress(6, 4)}, {"rank_1", progress(6, 4)}, {"job.log", status(0, 5, 6, 4) + dump_signal(2, 4, 4)}, {"stack_rank2.txt", kSaves}});
  EXPECT_EQ(with_log.verdict, Verdict::kOtherCause);  // it saves: late, and no call is missing
  EXPECT_EQ(with_log.findings.front().finding_class, "slow_peer");
  EXPECT_EQ(with_log.findings.front().divergent_ranks, std::vector<std::int32_t>{2});
  EXPECT_NE(with_log.findings.front().explanation.find("stands in save"), std::string::npos) << with_log.findings.front().explanation;
}

struct ContradictionCase {
  std::string name;
  TextFiles files;
  std::vector<std::string> told;  // in the sentence
  Verdict verdict = Verdict::kInsufficient;
  friend void PrintTo(const ContradictionCase& c, std::ostream* out) { *out << c.name; }
};

class Contradictions : public ::testing::TestWithParam<ContradictionCase> {};

TEST_P(Contradictions, AreToldWithBothPlacesAndDecideNothing) {
  const Report report = judge(GetParam().files);
  EXPECT_EQ(verdict_name(report.verdict), verdict_name(GetParam().verdict));
  const std::string sentence = contradiction_of(report);
  for (const std::string& part : GetParam().told) EXPECT_NE(sentence.find(part), std::string::npos) << part << " is not in: " << sentence;
  if (GetParam().verdict != Verdict::kInsufficient) return;
  EXPECT_EQ(report.findings.front().finding_class, "evidence_contradicts");
  EXPECT_TRUE(report.findings.front().divergent_ranks.empty());
  EXPECT_EQ(report.action, Action::kCollectMore);
}

INSTANTIATE_TEST_SUITE_P(Table, Contradictions, ::testing::ValuesIn<ContradictionCase>({
    {"TheDumpOfTheAccusedIsOlderThanTheLog", behind(status(2, 57, 57, 56)), {"job.log:1", "rank 2", "rank_2", "call 57", "ends with call 4"}},
    {"TheDumpOfAnotherRankIsOlder", behind(status(0, 41, 57, 40)), {"rank 0", "rank_0", "call 57"}, Verdict::kImbalance},
    {"GivenUpAndCompleted", behind(status(2, 2, 4, 1)), {"job.log:1", "gave up call 2", "rank_2", "up to 4 completed"}},
    {"AnotherOperationUnderTheNumber",
     {{"rank_0", dump({call(1), call(2, "scheduled", "nccl:broadcast")})}, {"rank_1", dump({call(1), call(2, "scheduled")})},
      {"rank_2", dump({call(1), call(2, "scheduled")})}, {"job.log", wait(0, 2, "ALLREDUCE", 131072) + status(0, 2, 2, 1)}},
     {"job.log:1", "ALLREDUCE", "broadcast", "rank_0"}},
    {"AnotherSizeUnderTheNumber",
     {{"rank_0", dump({call(1), call(2, "scheduled", "nccl:broadcast")})}, {"rank_1", dump({call(1), call(2, "scheduled")})},
      {"rank_2", dump({call(1), call(2, "scheduled")})}, {"job.log", wait(0, 2, "BROADCAST", 7) + status(0, 2, 2, 1)}},
     {"job.log:1", "of 7 elements", "of 131072"}},
    {"ARankBeyondTheSizeOfTheJob",
     {{"rank_0", progress(6, 4, {0, 5})}, {"rank_5", progress(4, 4, {0, 5})}, {"job.log", "args: world_size=4 local_rank=0\n" + status(0, 5, 6, 4)}},
     {"job.log:1", "4 ranks", "rank_5"}},
    {"ALineOfARankThatTheJobHasNot", behind(status(9, 5, 6, 4)), {"job.log:1", "rank 9", "up to 2"}, Verdict::kImbalance},
    {"TwoDumpsOfOneRank",
     {{"a_rank_2", progress(4, 4)}, {"b_rank_2", progress(5, 5)}, {"rank_0", progress(6, 4)}, {"rank_1", progress(6, 4)}}, {"a_rank_2", "b_rank_2", "rank 2"}},
    {"OtherMembersUnderOneName",
     {{"rank_0", progress(6, 4, {0, 1})}, {"rank_1", progress(4, 4, {0, 1, 2})}, {"rank_2", progress(4, 4, {0, 1, 2})}}, {"'0'", "[0-1]", "[0-2]", "rank_0"}},
    {"AnotherDescriptionOfAGroup",
     {{"rank_0", dump({call(1), call(2, "scheduled"), call(3, "scheduled")}, {0, 1}, "TENSOR_MODEL_PARALLEL_GROUP")},
      {"rank_1", dump({call(1)}, {0, 1}, "TENSOR_MODEL_PARALLEL_GROUP")}, {"job.log", status(1, 7, 7, 6, "0(mesh_dp)")}},
     {"job.log:1", "mesh_dp", "TENSOR_MODEL_PARALLEL_GROUP"}},
    {"LinesOfAnotherDay", behind(status(0, 5, 6, 4, "0(default_pg)", "E321 02:07:08")), {"job.log:1", "21 March", "10 October"}, Verdict::kImbalance},
}), [](const auto& test) { return test.param.name; });

TEST(JoinedEvidence, CopiesOfADumpAndSubgroupsOfOneNameAreNoContradiction) {
  EXPECT_EQ(contradiction_of(judge({{"a_rank_2", progress(4, 4)}, {"b_rank_2", progress(4, 4)}, {"rank_0", progress(6, 4)}, {"rank_1", progress(6, 4)}})), "");
  EXPECT_EQ(contradiction_of(judge({{"rank_0", progress(4, 4, {0, 1})}, {"rank_1", progress(4, 4, {0, 1})}, {"rank_2", progress(4, 4, {2, 3})}, {"rank_3", progress(4, 4, {2, 3})}})), "");
}

TEST(JoinedEvidence, CollLinesBesideDumpsAreNotLostSilently) {
  const std::string lines =
      "node-a:10:10 [0] NCCL INFO comm 0x1 rank 0 nranks 3 cudaDev 0 busId 1 commId 0xab - Init COMPLETE\n"
      "node-a:12:12 [2] NCCL INFO comm 0x3 rank 2 nranks 3 cudaDev 2 busId 3 commId 0xab - Init COMPLETE\n"
      "node-a:10:10 [0] NCCL INFO AllReduce: opCount 4 sendbuff 0x7 recvbuff 0x7 count 131072 datatype 7 op 0 root 0 comm 0x1 [nranks=3] stream 0x2\n"
      "node-a:12:12 [2] NCCL INFO Broadcast: opCount 4 sendbuff 0x7 recvbuff 0x7 count 9 datatype 7 op 0 root 0 comm 0x3 [nranks=3] stream 0x2\n";
  const Report report = judge({{"rank_0", progress(6, 4)}, {"rank_1", progress(6, 4)}, {"job.log", lines}});
  std::string all;
  for (const std::string& warning : report.input_quality.warnings) all += warning;
  EXPECT_NE(all.find("2 NCCL COLL lines of 2 processes are left aside"), std::string::npos) << all;
  bool told = false;
  for (const Finding& finding : report.findings) told = told || finding.explanation.find("rank 2: node-a:12 [2] Broadcast") != std::string::npos;
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace lockstep
