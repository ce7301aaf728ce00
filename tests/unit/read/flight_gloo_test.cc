// Flight Recorder dumps of gloo as torch 2.15 writes them: no call is marked as completed, one nameless row of members, no messages.
#include <fmt/format.h>

#include <filesystem>

#include "diagnose/diagnose.h"
#include "read/load.h"
#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

struct GlooCall {
  int group = 0;
  int seq = 1;
  bool retired = true;
  const char* name = "all_reduce";
  int op = 0;  ///< 0 = as seq
  const char* frames = "";
};

/// A dump: `others` are the members in the nameless row.
std::string gloo_dump(const std::vector<GlooCall>& calls, const char* others) {
  std::string entries;
  int record = 0;
  for (const GlooCall& call : calls) {
    entries += fmt::format(
        R"({}{{"record_id":{},"pg_id":{},"process_group":["{}","{}"],"collective_seq_id":{},"p2p_seq_id":0,"op_id":{},"profiling_name":"gloo:{}",)"
        R"("time_created_ns":{},"input_sizes":[[64]],"input_dtypes":["Float"],"output_sizes":[[64]],"output_dtypes":["Float"],"state":"scheduled",)"
        R"("time_discovered_started_ns":0,"time_discovered_completed_ns":0,"retired":{},"timeout_ms":12000,"is_p2p":false{}}})",
        record == 0 ? "" : ",", record, call.group, call.group, call.group == 0 ? "default_pg" : "undefined", call.seq,
        call.op == 0 ? call.seq : call.op, call.name, 1'796'160'256'000'000'000 + record, call.retired, call.frames);
    ++record;
  }
  return fmt::format(R"({{"comm_lib_version":"","version":"2.10","pg_config":{{"":{{"name":"","desc":"","ranks":"{}"}}}},)"
                     R"("pg_status":{{"0":{{"last_enqueued_collective":"9","last_completed_collective":"9"}}}},"entries":[{}]}})",
                     others, entries);
}

Result<Job> load(const std::vector<std::string>& dumps) {
  static const TempDir dir;
  static int number = 0;
  const std::string folder = fmt::format("{}/case{}", dir.path(), number++);
  std::filesystem::create_directory(folder);
  for (std::size_t rank = 0; rank < dumps.size(); ++rank) {
    std::ofstream(fmt::format("{}/rank_{}", folder, rank), std::ios::binary) << dumps[rank];
  }
  return load_job(std::vector<std::string>{folder});
}

Report judge(const std::vector<std::string>& dumps) {
  const auto job = load(dumps);
  EXPECT_TRUE(job) << job.error().message;
  return diagnose(*job, std::nullopt);
}

TEST(FlightGloo, WhatRetiredIsDone) {
  const std::string dump = gloo_dump({{0, 1}, {0, 2}, {0, 3}}, "[0, 1]");
  EXPECT_EQ(judge({dump, dump}).verdict, Verdict::kConsistent);
}

TEST(FlightGloo, TheNamelessRowIsNoGroupOfTheRank) {
  // On rank 2 it holds the numbers of a pair, of which rank 2 is none.
  const std::string one = gloo_dump({{0, 1}, {1, 1}}, "[0, 1]"), other = gloo_dump({{0, 1}, {2, 1}}, "[0, 1]");
  const auto job = load({one, one, other, other});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->programs().size(), 4U);
  EXPECT_EQ(diagnose(*job, std::nullopt).verdict, Verdict::kConsistent);
}

TEST(FlightGloo, ARankThatIsNotThereIsKnownFromTheRow) {
  const std::string dump = gloo_dump({{0, 1}, {0, 2, false}}, "[0, 1, 2]");
  const Report report = judge({dump, dump});
  EXPECT_EQ(report.verdict, Verdict::kInsufficient);
  EXPECT_EQ(report.input_quality.ranks_expected, 3U);
}

TEST(FlightGloo, ARankThatReadsItsDataIsNoFault) {
  const std::string waits = gloo_dump({{0, 1}, {0, 2, false}}, "[0, 1]"), reads = gloo_dump({{0, 1}}, "[0, 1]");
  const Report report = judge({waits, reads});
  EXPECT_EQ(report.verdict, Verdict::kInsufficient);
  for (const Suspect& suspect : report.suspects) EXPECT_NE(suspect.confidence, Confidence::kCertain);
}

TEST(FlightGloo, CallsThatFailedCrosswiseAreADeadlock) {
  // Dumps taken when an exception ended the ranks: the call that each of them stood in is retired as the others are.
  const std::string first = gloo_dump({{1, 1}, {2, 1}, {1, 2}}, "[0, 1]"), second = gloo_dump({{1, 1}, {2, 1}, {2, 2}}, "[0, 1]");
  const Report report = judge({first, second});
  EXPECT_TRUE(report.verdict == Verdict::kDeadlock || report.verdict == Verdict::kOrder) << verdict_name(report.verdict);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings.front().divergent_ranks, (std::vector<std::int32_t>{0, 1}));
}

TEST(FlightGloo, AnOlderDumpIsNoFailure) {
  const std::string older = gloo_dump({{0, 1}, {0, 2}}, "[0, 1]"), newer = gloo_dump({{0, 1}, {0, 2}, {0, 3}, {0, 4}}, "[0, 1]");
  EXPECT_EQ(judge({older, newer}).verdict, Verdict::kInsufficient);
}

TEST(FlightGloo, WhereMessagesWentUnrecordedNothingIsKnownToHaveEnded) {
  const std::string dump = gloo_dump({{0, 1}, {0, 2, true, "all_reduce", 5}}, "[0, 1]");
  EXPECT_EQ(judge({dump, dump}).verdict, Verdict::kInsufficient);
}

TEST(FlightGloo, ALastBroadcastMayHaveFailed) {
  const std::string dump = gloo_dump({{0, 1}, {0, 2, true, "broadcast"}}, "[0, 1]");
  const Report report = judge({dump, dump});
  EXPECT_EQ(report.verdict, Verdict::kInsufficient);
}

TEST(FlightGloo, FramesOfCppAndOfTheInterpreterAreLeftOut) {
  constexpr const char* kFrames =
      R"x(,"frames":[{"name":"torch::unwind::unwind()","filename":"/v/torch/lib/libtorch_cpu.so","line":1},)x"
      R"x({"name":"??","filename":"/usr/bin/python3.11","line":5},{"name":"all_reduce","filename":"/v/torch/distributed/distributed_c10d.py","line":4174},)x"
      R"x({"name":"_PyEval_EvalFrameDefault","filename":"/usr/bin/python3.11","line":6},{"name":"step","filename":"/home/u/train.py","line":40}])x";
  const std::string dump = gloo_dump({{0, 1, true, "all_reduce", 1, kFrames}}, "[0, 1]");
  const auto job = load({dump, dump});
  ASSERT_TRUE(job);
  const CallSite& site = job->site(job->program(ProgramIndex{0}).operations[0].site);
  ASSERT_EQ(site.frames.size(), 1U);
  EXPECT_EQ(site.frames[0].file, "/home/u/train.py");
  EXPECT_EQ(site.frames[0].line, 40U);
}

}  // namespace
}  // namespace lockstep
