// Flight Recorder dumps through load_job: made ones, damaged ones, and the whole chain to a verdict on the shared ones.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "diagnose/diagnose.h"
#include "read/flight_ranks.h"
#include "read/load.h"
#include "support/flight_writer.h"
#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

using lockstep::testing::FlightEntry;
using lockstep::testing::FlightWriter;

std::string dump(std::vector<FlightEntry> entries, std::vector<std::int32_t> members = {0, 1}, std::int64_t first_record = 0) {
  FlightWriter writer;
  writer.group("0", "default_pg", members);
  writer.next_record = first_record;
  for (const FlightEntry& entry : entries) writer.entry(entry);
  return writer.finish();
}

FlightEntry call(std::int64_t seq, std::string state = "completed") {
  FlightEntry entry;
  entry.collective_seq = seq;
  entry.state = std::move(state);
  entry.retired = entry.state == "completed";
  return entry;
}

Result<Job> load(const std::vector<std::pair<std::string, std::string>>& files) {
  static const TempDir dir;
  static int number = 0;
  const std::string folder = fmt::format("{}/case{}", dir.path(), number++);
  std::filesystem::create_directory(folder);
  for (const auto& [name, bytes] : files) std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
  return load_job(std::vector<std::string>{folder});
}

Report judge(const std::vector<std::pair<std::string, std::string>>& files) {
  const auto job = load(files);
  EXPECT_TRUE(job) << job.error().message;
  return diagnose(*job, std::nullopt);
}

TEST(FlightRecorder, CallsKeepTheirNumbersSizesAndSites) {
  FlightEntry entry = call(31);
  entry.frames = {7, 8};
  const auto job = load({{"trace_rank_0", dump({entry, call(32)}, {0, 1}, 30)}, {"trace_rank_1", dump({call(32)}, {0, 1}, 31)}});
  ASSERT_TRUE(job);
  const Program& program = job->program(ProgramIndex{0});
  EXPECT_TRUE(program.head_missing);
  EXPECT_EQ(program.operations[0].seq, 30U);
  EXPECT_EQ(job->count_text(program.operations[0].count), "131072");
  EXPECT_EQ(job->datatype(program.operations[0].datatype), "f32");
  EXPECT_EQ(job->site(program.operations[0].site).frames.front().function, "function_7");
  EXPECT_EQ(job->program(ProgramIndex{1}).operations[0].seq, 31U);
  EXPECT_EQ(job->communicator(program.operations[0].comm).name, "default_pg");
}

TEST(FlightRecorder, ARankThatIsOneCallAheadIsNoFault) {
  const Report report = judge({{"r_0", dump({call(1), call(2, "scheduled")})}, {"r_1", dump({call(1)})}});
  EXPECT_EQ(report.verdict, Verdict::kInsufficient);
}

TEST(FlightRecorder, ARankThatLacksSeveralCallsIsNamed) {
  const Report report = judge({{"r_0", dump({call(1), call(2, "scheduled"), call(3, "scheduled"), call(4, "scheduled")}, {0, 1, 2})},
                               {"r_1", dump({call(1)}, {0, 1, 2})},
                               {"r_2", dump({call(1), call(2, "scheduled"), call(3, "scheduled")}, {0, 1, 2})}});
  EXPECT_EQ(report.verdict, Verdict::kImbalance);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings.front().divergent_ranks, std::vector<std::int32_t>{1});
}

TEST(FlightRecorder, ABusierRankWhoseRingWrappedIsNoFault) {
  const Report report = judge({{"r_0", dump({call(1), call(2), call(3)})}, {"r_1", dump({call(3)}, {0, 1}, 1000)}});
  EXPECT_EQ(report.verdict, Verdict::kConsistent);
}

TEST(FlightRecorder, RankFromTheNameWhateverStandsAroundIt) {
  EXPECT_EQ(numbers_of_name("a/nccl_trace_rank_container-node02_5").front(), 5);
  EXPECT_EQ(numbers_of_name("_dump_12").front(), 12);
  EXPECT_EQ(numbers_of_name("fr_rank3_step100.pickle").front(), 3);
  EXPECT_EQ(numbers_of_name("trace.7").front(), 7);
  EXPECT_EQ(numbers_of_name("rank-4.json").front(), 4);
  EXPECT_TRUE(numbers_of_name("trace.pkl").empty());
}

TEST(FlightRecorder, RankFromItsMessagesWhereTheNameIsWrong) {
  FlightEntry send = call(0);
  send.name = "nccl:send 1->0";
  send.is_message = true;
  send.message_seq = 1;
  const auto job = load({{"x_77", dump({send}, {4, 5})}, {"x_4", dump({call(1)}, {4, 5})}});
  ASSERT_TRUE(job);
  EXPECT_NE(job->program_of_rank(5), kNoProgram);
  EXPECT_NE(all_warnings(*job).find("its groups are those of rank 5"), std::string::npos);
}

TEST(FlightRecorder, TwoDumpsOfOneRankAreNotMixed) {
  const auto job = load({{"a_0", dump({call(1)})}, {"b_0", dump({call(1), call(2)})}});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->programs().size(), 1U);
  EXPECT_NE(all_warnings(*job).find("seems to be of rank 0"), std::string::npos);
}

TEST(FlightRecorder, ATruncatedDumpProvesNoAbsence) {
  std::string cut = dump({call(1), call(2), call(3), call(4)});
  cut.resize(cut.size() - 60);
  const Report report = judge({{"r_0", dump({call(1), call(2), call(3), call(4)})}, {"r_1", cut}});
  EXPECT_EQ(report.verdict, Verdict::kInsufficient);
}

TEST(FlightRecorder, MessagesOfAGroupHaveTheStateOfItsEnd) {
  const auto part = [](std::string name) {
    FlightEntry entry = call(1, "scheduled");
    entry.name = std::move(name);
    entry.is_message = true;
    entry.message_seq = 1;
    return entry;
  };
  FlightEntry end = part("nccl:coalesced");
  end.state = "completed";
  const auto job = load({{"r_0", dump({part("nccl:send 0->1"), part("nccl:recv 0<-1"), end})},
                         {"r_1", dump({part("nccl:send 1->0"), part("nccl:recv 1<-0"), end})}});
  ASSERT_TRUE(job);
  const auto& operations = job->program(ProgramIndex{0}).operations;
  ASSERT_EQ(operations.size(), 2U);
  EXPECT_EQ(operations[0].state, OpState::kCompleted);
  EXPECT_NE(operations[0].launch, 0U);
  EXPECT_EQ(operations[0].launch, operations[1].launch);
  EXPECT_EQ(diagnose(*job, std::nullopt).verdict, Verdict::kConsistent);
}

TEST(FlightRecorder, APickleThatWouldRunCodeIsRefused) {
  using namespace std::string_literals;
  const auto job = load({{"r_0", "\x80\x02}(X\x09\0\0\0pg_configcos\nsystem\n"s}});
  ASSERT_FALSE(job);
  EXPECT_NE(job.error().message.find("GLOBAL"), std::string::npos) << job.error().message;
}

struct SharedCase {
  const char* name;
  Verdict verdict;
  std::vector<std::int32_t> ranks{};
  const char* finding_class = "";
};

/// Scenario, and what is right to say of it; truth.txt beside each says what was done.
const SharedCase kScenarios[] = {
    {"a00_clean_dp", Verdict::kConsistent},
    {"a02_missing_diff_shape", Verdict::kImbalance, {2}, "call_skipped"},
    {"a03_wrong_op_rank1", Verdict::kMismatch, {1}, "kind_differs"},
    {"a05_wrong_size", Verdict::kMismatch, {3}, "size_differs"},
    {"b01_cross_pg_inversion", Verdict::kDeadlock, {0, 1}, "order_across_communicators"},
    {"b03_cross_pg_inversion_default_timing", Verdict::kDeadlock, {0, 1}, "order_across_communicators"},
    {"c02_p2p_head_to_head", Verdict::kDeadlock, {0, 1}, "message_order"},
    {"c03_p2p_size_mismatch", Verdict::kMismatch, {0, 1}, "message_differs"},
    {"c04_p2p_dtype_mismatch", Verdict::kMismatch, {0, 1}, "message_differs"},
    {"d01_batched_ring_clean", Verdict::kConsistent},
    {"d02_batched_ring_missing_recv", Verdict::kImbalance, {2}, "message_unmatched"},
    {"e01_a2a_uneven_valid", Verdict::kConsistent},
    {"e02_a2a_total_mismatch", Verdict::kMismatch, {0, 1, 2, 3}, "size_differs"},
    {"f01_dead_rank_no_dump", Verdict::kInsufficient, {3}, "evidence_missing"},
    {"f03_dead_rank_masks_real_fault", Verdict::kMismatch, {0, 1}, "datatype_differs"},
    {"g01_wrapped_equal", Verdict::kImbalance, {1}, "call_skipped"},
    {"h01_state_skew_benign", Verdict::kConsistent},
    {"i01_two_independent_faults", Verdict::kMismatch, {0, 1}, "size_differs"},
    {"j01_gloo_backend", Verdict::kMismatch, {0, 1}, "size_differs"},
    {"j02_mpi_backend", Verdict::kMismatch, {0, 1}, "size_differs"},
    {"k02_broadcast_root_mismatch", Verdict::kInsufficient, {}, "evidence_missing"},
    {"k04_hostname_in_name", Verdict::kConsistent},
    {"p01_unbatched_pair_clean_ws2", Verdict::kConsistent},
    {"p02_unbatched_pair_clean_ws4", Verdict::kConsistent},
    {"p03_head_to_head_ws2", Verdict::kDeadlock, {0, 1}, "message_order"},
    {"p04_size_mismatch_ws2", Verdict::kMismatch, {0, 1}, "message_differs"},
    {"p06_send_without_recv_ws2", Verdict::kDeadlock, {0, 1}},
    {"p07_batched_ring_clean_ws4", Verdict::kConsistent},
    {"p09_batched_size_mismatch_ws2", Verdict::kMismatch, {0, 1}, "message_differs"},
    {"p10_batched_pp_neighbours_clean_ws4", Verdict::kConsistent},
};

void expect_report(const std::string& folder, const SharedCase& expected) {
  SCOPED_TRACE(folder);
  const auto job = load_job(std::vector<std::string>{folder}, LoadOptions{.jobs = 2, .native_lookup = true});
  ASSERT_TRUE(job) << job.error().message;
  const Report report = diagnose(*job, std::nullopt);
  EXPECT_EQ(verdict_name(report.verdict), verdict_name(expected.verdict));
  if (expected.verdict == Verdict::kConsistent) {
    EXPECT_TRUE(report.findings.empty());
    return;
  }
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings.front().divergent_ranks, expected.ranks);
  if (*expected.finding_class != '\0') {
    EXPECT_EQ(report.findings.front().finding_class, expected.finding_class);
  }
}

TEST(FlightRecorder, EveryScenarioGetsItsVerdict) {
  const std::string shared = shared_directory();
  if (shared.empty()) GTEST_SKIP() << "no shared inputs; set LOCKSTEP_SHARED";
  for (const SharedCase& scenario : kScenarios) {
    for (const char* form : {"pickle", "json"}) {
      expect_report(fmt::format("{}/flight_recorder/scenarios/{}/{}", shared, scenario.name, form), scenario);
    }
  }
  // Call sites show which call was left out; JSON dumps have none, and one call less is nothing by itself.
  const std::string skipped = shared + "/flight_recorder/scenarios/a01_missing_same_shape/";
  expect_report(skipped + "pickle", {"", Verdict::kImbalance, {2}, "call_skipped"});
  expect_report(skipped + "json", {"", Verdict::kInsufficient, {2}, "evidence_missing"});
  const std::string cut = shared + "/flight_recorder/scenarios/k05_truncated_pickle/";
  expect_report(cut + "pickle", {"", Verdict::kInsufficient, {1}, "evidence_missing"});
  expect_report(cut + "json", {"", Verdict::kConsistent});
}

TEST(FlightRecorder, TheInjectedRanksOfARealJobAreNamedInOneFinding) {
  const std::string shared = shared_directory();
  if (shared.empty()) GTEST_SKIP() << "no shared inputs; set LOCKSTEP_SHARED";
  for (const SharedCase& real : {SharedCase{"gpu_error_1st", Verdict::kOtherCause, {12, 14}, "host_frozen"},
                                 SharedCase{"lock_gil_1st", Verdict::kImbalance, {9, 14}, "never_arrived"}}) {
    const std::string folder = fmt::format("{}/flight_recorder/real/{}", shared, real.name);
    expect_report(folder, real);
    const auto job = load_job(std::vector<std::string>{folder});
    const Report report = diagnose(*job, std::nullopt);
    EXPECT_EQ(report.findings.size(), 1U);
    for (const Suspect& suspect : report.suspects) {
      const bool injected = std::ranges::find(real.ranks, suspect.rank) != real.ranks.end();
      EXPECT_EQ(suspect.role, injected ? "cause" : "victim") << suspect.rank;
    }
    EXPECT_EQ(report.suspects.size(), 16U);
  }
}

}  // namespace
}  // namespace lockstep
