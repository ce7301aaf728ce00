#include "read/job_json.h"

#include <fmt/format.h>

#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

TEST(JobJson, TakesRangesOfRanksForTheSameCalls) {
  const auto job = read_text(R"({"groups": {"dp": "0-2,5"}, "ranks": {"0-2": ["all_reduce dp f32[1]", "barrier dp"], "5": ["all_reduce dp f32[1]"]}})");
  ASSERT_TRUE(job);
  EXPECT_EQ(all_warnings(*job), "");
  EXPECT_EQ(job->communicators()[0].members, (std::vector<std::int32_t>{0, 1, 2, 5}));
  ASSERT_EQ(job->programs().size(), 4U);
  for (const Program& program : job->programs()) EXPECT_EQ(program.operations.size(), program.rank == 5 ? 1U : 2U);
}

TEST(JobJson, ShortTextDoesNotBecomeAHugeJob) {
  std::string groups;
  for (int i = 0; i < 1000; ++i) groups += fmt::format("{}\"g{}\": \"0-1048574\"", i == 0 ? "" : ",", i);
  const auto job = read_text(fmt::format(R"({{"groups": {{{}}}, "ranks": {{"0": []}}}})", groups));
  ASSERT_TRUE(job);
  EXPECT_TRUE(has_warning(*job, "more than is followed"));
  EXPECT_FALSE(job->quality().complete);
}

TEST(JobJson, ReadsTheWholeForm) {
  const auto job = read_text(R"({"schema": "lockstep-job/1", "groups": {"mp": [0,1], "dp": [1,3]},
    "ranks": {"1": ["all_reduce mp f32[1]"], "0": ["all_reduce mp f32[1]", "barrier mp"]},
    "ends": {"0": "exited 2", "1": "killed 9", "3": "running"}, "library": "nccl"})");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(all_warnings(*job), "");
  EXPECT_TRUE(job->quality().complete);
  EXPECT_EQ(job->library(), Library::kNccl);
  EXPECT_EQ(job->quality().ranks_expected, 3U) << "0 and 1 with lines, 3 as a member";
  ASSERT_EQ(job->programs().size(), 2U);
  EXPECT_EQ(job->programs()[0].rank, 0);
  EXPECT_EQ(job->programs()[0].operations.size(), 2U);
  EXPECT_EQ(job->programs()[0].operations[1].seq, 1U);
  EXPECT_EQ(job->source(job->programs()[0].source), "in");
  EXPECT_EQ(job->end_of_rank(0), (ProgramEnd{EndKind::kExited, 2}));
  EXPECT_EQ(job->end_of_rank(1), (ProgramEnd{EndKind::kKilled, 9}));
  EXPECT_EQ(job->end_of_rank(3), (ProgramEnd{EndKind::kRunning, 0}));
  ASSERT_EQ(job->communicators().size(), 2U);
  EXPECT_EQ(job->communicators()[1].members, (std::vector<std::int32_t>{1, 3}));
}

TEST(JobJson, ReadsGroupsThatComeAfterTheLines) {
  const auto job = read_text(R"({"ranks": {"0": ["send 1", "barrier mp"], "1": ["recv 0"]}, "why": {"a": [1, {"b": null}]},
    "ends": {"1": "unknown"}, "groups": {"pp": [0,1], "mp": [0]}})");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(all_warnings(*job), "");
  EXPECT_EQ(job->communicator(program_of(*job, 0).operations.at(0).comm).name, "pp");
  EXPECT_EQ(job->end_of_rank(1).kind, EndKind::kUnknown);
}

TEST(JobJson, InventsNoProgramForARankThatOnlyAGroupNames) {
  const auto job = read_text(R"({"groups": {"mp": [0,1,2]}, "ranks": {"0": []}})");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->programs().size(), 1U);
  EXPECT_EQ(job->program_of_rank(1), kNoProgram);
}

TEST(JobJson, SaysWhichLineOfTheFileALineIs) {
  const auto job = read_text("\n{\"groups\": {\"mp\": [0]},\r\n \"ranks\": {\"0\": [\n\"barrier mp\",\n\n\"barrier mp\"\n]}}\n");
  ASSERT_TRUE(job);
  EXPECT_EQ(program_of(*job, 0).operations.at(0).line, 4U);
  EXPECT_EQ(program_of(*job, 0).operations.at(1).line, 6U);
}

TEST(JobJson, ReadsPastAByteOrderMark) {
  const auto job = read_text("\xef\xbb\xbf{\"ranks\": {\"0\": [\"barrier\"]}}");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->operation_count(), 1U);
}

TEST(JobJsonDamage, TruncatedTail) {
  const std::string whole = R"({"groups": {"mp": [0,1]}, "ranks": {"0": ["barrier mp"], "1": ["barrier mp", "barrier mp"]}})";
  const auto job = read_text(whole.substr(0, whole.size() - 6));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_TRUE(has_warning(*job, "in:1: the JSON ends before it is complete")) << all_warnings(*job);
  EXPECT_FALSE(job->quality().complete);
  EXPECT_FALSE(program_of(*job, 0).tail_missing);
  EXPECT_EQ(program_of(*job, 0).end.kind, EndKind::kUnknown) << "the ends may have been cut off";
  EXPECT_TRUE(program_of(*job, 1).tail_missing);
  EXPECT_EQ(program_of(*job, 1).operations.size(), 1U);
}

TEST(JobJsonDamage, TruncatedAnywhereReadsOrSaysWhy) {
  const std::string whole = R"({"schema": "lockstep-job/1", "ranks": {"0": ["batch[send 1; recv 1]", "x"], "1": []},
    "groups": {"mp": [0,1]}, "ends": {"0": "exited 1"}, "places": {"0": {"host": "n", "pid": 3}}, "missing": {"0": "head"}})";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto job = read_text(whole.substr(0, size));
    if (job) {
      EXPECT_FALSE(job->quality().complete) << size;
    } else {
      EXPECT_EQ(job.error().message.substr(0, 3), "in:") << job.error().message;
    }
  }
}

TEST(JobJsonDamage, NulBytes) {
  std::string text = R"({"groups": {"mp": [0]}, "ranks": {"0": ["barrier mp", "barrier mp"]}})";
  text.replace(text.rfind("barrier"), 7, std::string(7, '\0'));
  const auto job = read_text(text);
  ASSERT_TRUE(job);
  EXPECT_TRUE(has_warning(*job, "this is no JSON")) << all_warnings(*job);
  EXPECT_TRUE(program_of(*job, 0).tail_missing);
  EXPECT_EQ(program_of(*job, 0).operations.size(), 1U);
}

TEST(JobJsonDamage, TextAfterTheEndIsIgnored) {
  const auto job = read_text(std::string("{\"ranks\": {\"0\": [\"barrier\"]}}\n") + std::string(64, '\0'));
  ASSERT_TRUE(job);
  EXPECT_TRUE(has_warning(*job, "in:2: text after the end")) << all_warnings(*job);
  EXPECT_EQ(program_of(*job, 0).end.kind, EndKind::kExited);
}

TEST(JobJsonDamage, ContradictoryGroups) {
  const auto job = read_texts({{"a", R"({"groups": {"mp": [0,1]}, "ranks": {"0": ["barrier mp"]}})"},
                               {"b", R"({"groups": {"mp": [0,2]}, "ranks": {"1": ["barrier mp"]}})"}});
  ASSERT_TRUE(job);
  EXPECT_TRUE(has_warning(*job, "b:1: 'mp' has members [0,2] here and [0-1] before")) << all_warnings(*job);
  EXPECT_EQ(job->communicators()[0].members, (std::vector<std::int32_t>{0, 1}));
}

TEST(JobJsonDamage, GroupDefinedTwice) {
  const auto job = read_text(R"({"groups": {"mp": [0,1], "mp": [0]}, "ranks": {"0": ["barrier mp"]}})");
  ASSERT_TRUE(job);
  EXPECT_TRUE(has_warning(*job, "has members [0] here and [0-1] before")) << all_warnings(*job);
}

TEST(JobJsonDamage, MembersThatAreNoRanks) {
  const auto job = read_text(R"({"groups": {"mp": [0, -1, "x", 1.5, null, 1, 1, 4294967296], "pp": 7}, "ranks": {"0": ["barrier mp"]}})");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->communicators()[0].members, (std::vector<std::int32_t>{0, 1})) << all_warnings(*job);
  EXPECT_TRUE(has_warning(*job, "a rank is listed twice"));
  EXPECT_TRUE(has_warning(*job, "groups.pp: a group is a list of ranks"));
}

TEST(JobJsonDamage, GroupWithoutAName) {
  const auto job = read_text(R"({"groups": {"": [0, 1]}, "ranks": {"0": ["send 1", "barrier", "wait 1"]}})");
  ASSERT_TRUE(job);
  EXPECT_EQ(program_of(*job, 0).operations.size(), 3U);
  EXPECT_EQ(job->communicator(program_of(*job, 0).operations[1].comm).name, "");
}

TEST(JobJsonDamage, RanksThatAreNoRanks) {
  const auto job = read_text(R"({"ranks": {"zero": ["barrier"], "-1": [], "0": ["barrier", 7, {"a": 1}, [1]], "1": "barrier"}})");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->programs().size(), 1U);
  EXPECT_EQ(program_of(*job, 0).operations.size(), 4U);
  EXPECT_TRUE(program_of(*job, 0).tail_missing);
  EXPECT_TRUE(has_warning(*job, "ranks.'zero': no rank")) << all_warnings(*job);
  EXPECT_TRUE(has_warning(*job, "ranks.1: the lines of a rank are a list"));
}

TEST(JobJsonDamage, EndsThatSayNothing) {
  const auto job = read_text(R"({"ranks": {"0": []}, "ends": {"0": "gone", "1": "exited x", "a": "running", "2": 7}, "library": "hccl"})");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->end_of_rank(0), (ProgramEnd{EndKind::kExited, 0}));
  EXPECT_TRUE(has_warning(*job, "ends.0: 'gone' is no end")) << all_warnings(*job);
  EXPECT_TRUE(has_warning(*job, "library 'hccl'"));
}

TEST(JobJsonDamage, FutureVersion) {
  const auto job = read_text(R"({"schema": "lockstep-job/2", "ranks": {"0": []}})");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(job.error().message, "in:1: schema 'lockstep-job/2'; this program reads lockstep-job/1");
}

TEST(JobJsonDamage, NoRanks) {
  const auto job = read_text(R"({"groups": {"mp": [0,1]}})");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kMalformed);
  EXPECT_EQ(job.error().message, "in: has no \"ranks\" object: nothing to compare");
}

TEST(JobJsonDamage, DeepNesting) {
  for (const char* opening : {"[", "{\"a\":"}) {
    std::string text = R"({"ranks": {"0": ["barrier"]}, "x": )";
    for (int i = 0; i < 200000; ++i) text += opening;
    const auto job = read_text(text);
    ASSERT_TRUE(job);
    EXPECT_TRUE(has_warning(*job, "nested deeper than 64")) << all_warnings(*job);
    EXPECT_EQ(program_of(*job, 0).operations.size(), 1U);
  }
}

TEST(JobJsonDamage, MillionMemberGroup) {
  std::string members;
  for (int i = 0; i < 1000000; ++i) members += fmt::format("{}{}", i == 0 ? "" : ",", i);
  const auto job = read_text("{\"groups\": {\"world\": [" + members +
                             "]}, \"ranks\": {\"0\": [\"barrier world\", \"broadcast world f32[1] root=999999\"]}}");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->communicators()[0].members.size(), 1000000U);
  EXPECT_EQ(job->programs().size(), 1U);
  EXPECT_EQ(all_warnings(*job), "");
}

TEST(JobJsonDamage, DuplicateRankFile) {
  const std::string text = R"({"groups": {"mp": [0]}, "ranks": {"0": ["split mp color=1", "barrier mp"]}})";
  const auto job = read_texts({{"a", text}, {"b", text}});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->operation_count(), 2U);
  EXPECT_TRUE(job->quality().complete);
  EXPECT_TRUE(has_warning(*job, "a and b hold the same 2 calls of rank 0")) << all_warnings(*job);
}

TEST(JobJsonDamage, DifferentFilesOfOneRank) {
  const auto text = [](std::string_view lines) {
    return fmt::format(R"({{"groups": {{"mp": [0]}}, "ranks": {{"0": [{}]}}}})", lines);
  };
  const std::string one = text(R"("barrier mp")");
  const std::string two = text(R"("barrier mp", "all_reduce mp f32[1]")");
  const std::string other = text(R"("all_reduce mp f32[1]")");
  const auto grown = read_texts({{"a", one}, {"b", two}});
  ASSERT_TRUE(grown);
  EXPECT_EQ(grown->operation_count(), 2U);
  EXPECT_FALSE(grown->quality().complete);
  EXPECT_FALSE(program_of(*grown, 0).tail_missing) << "an earlier snapshot";
  EXPECT_TRUE(has_warning(*grown, "equal in the first 1 calls: the longer one, b, is used")) << all_warnings(*grown);
  const auto contradictory = read_texts({{"b", two}, {"c", other}});
  ASSERT_TRUE(contradictory);
  EXPECT_EQ(contradictory->operation_count(), 2U);
  EXPECT_TRUE(program_of(*contradictory, 0).tail_missing);
}

TEST(JobJsonDamage, WarningsOfOneFileAreLimited) {
  std::string lines;
  for (int i = 0; i < 100000; ++i) lines += fmt::format("{}\"bogus {}\"", i == 0 ? "" : ",\n", i);
  const auto job = read_texts({{"a", "{\"ranks\": {\"0\": [" + lines + "]}}"}, {"b", R"({"ranks": {"1": ["bogus"]}})"}});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->quality().warnings.size(), FileWarnings::kMaxShown + 2);
  EXPECT_TRUE(has_warning(*job, "99984 more warnings about this file, the last about line 100000")) << all_warnings(*job);
  EXPECT_TRUE(has_warning(*job, "b:1: ranks.1[0]"));
}

}  // namespace
}  // namespace lockstep
