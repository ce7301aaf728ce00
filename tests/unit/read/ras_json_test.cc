// Answers of NCCL's RAS in JSON, from their bytes to a verdict.
#include "read/ras_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "diagnose/diagnose.h"
#include "read/log_file.h"

namespace lockstep {
namespace {

std::string rank(int number, int pid, int all_reduces) {
  return fmt::format(R"({{"rank": {}, "host": "10.1.7.{}", "pid": {}, "cuda_dev": {}, "nvml_dev": 0, "status": {{"init_state": 0, "async_error": 0, "abort_flag": false}},
    "collective_counts": {{"AllGather": 5, "AllReduce": {}}}}})", number, pid / 10, pid, pid % 4, all_reduces);
}

std::string communicator(const std::string& hash, const std::string& ranks, const std::string& missing = "") {
  return fmt::format(R"({{"hash": "{}", "size": 4, "ranks": [{}], "missing_ranks": [{}]}})", hash, ranks, missing);
}

std::string answer(const std::string& communicators) {
  return fmt::format(R"({{"nccl_version": "2.28.9", "communicators_count": 1, "communicators": [{}]}})", communicators);
}

Report judge(const std::string& text) {
  const std::string padded = text + std::string(MappedFile::kPaddingBytes, '\0');
  EXPECT_TRUE(looks_like_ras_json(text));
  auto parsed = parse_ras_json({.path = "ras.json", .contents = {padded.data(), text.size()}});
  EXPECT_TRUE(parsed) << parsed.error().message;
  std::vector<std::unique_ptr<ParsedEvidence>> logs;
  if (parsed) logs.push_back(*std::move(parsed));
  JobIntake intake;
  EXPECT_FALSE(join_logs(std::move(logs), intake).front());
  const ReportedEvidence reported = std::move(intake.reported());
  return diagnose(std::move(intake).finish(), std::nullopt, reported);
}

TEST(RasJson, NamesTheRankThatLaunchedFewer) {
  const Report report = judge(answer(communicator("0xaa", rank(0, 10, 105) + "," + rank(1, 11, 101) + "," + rank(2, 12, 105))));
  EXPECT_EQ(verdict_name(report.verdict), verdict_name(Verdict::kImbalance));
  EXPECT_EQ(report.findings.front().divergent_ranks, std::vector<std::int32_t>{1});
  ASSERT_FALSE(report.suspects.empty());
  EXPECT_EQ(report.suspects.front().place.pid, 11);
}

TEST(RasJson, ASkewOfOneIsNoVerdict) {
  const Report report = judge(answer(communicator("0xaa", rank(0, 10, 105) + "," + rank(1, 11, 104))));
  EXPECT_EQ(verdict_name(report.verdict), verdict_name(Verdict::kInsufficient));
}

TEST(RasJson, EqualCountsAreNoVerdict) {
  const Report report = judge(answer(communicator("0xaa", rank(0, 10, 105) + "," + rank(1, 11, 105))));
  EXPECT_EQ(verdict_name(report.verdict), verdict_name(Verdict::kInsufficient));
  EXPECT_TRUE(report.findings.front().divergent_ranks.empty());
}

TEST(RasJson, RanksOfASubgroupAreThoseOfTheJob) {
  const std::string world = communicator("0xaa", rank(0, 10, 9) + "," + rank(1, 11, 9) + "," + rank(2, 12, 9) + "," + rank(3, 13, 9));
  const std::string pair = communicator("0xbb", rank(0, 12, 70) + "," + rank(1, 13, 50) + "," + rank(2, 11, 70));
  EXPECT_EQ(judge(answer(world + "," + pair)).findings.front().divergent_ranks, std::vector<std::int32_t>{3});
}

TEST(RasJson, NobodyIsNamedWhereNoCommunicatorHoldsAll) {
  const std::string one = communicator("0xaa", rank(0, 10, 9) + "," + rank(1, 11, 9) + "," + rank(2, 14, 9));
  const std::string other = communicator("0xbb", rank(0, 12, 70) + "," + rank(1, 13, 50) + "," + rank(2, 15, 70));
  const Report report = judge(answer(one + "," + other));
  EXPECT_EQ(verdict_name(report.verdict), verdict_name(Verdict::kImbalance));
  EXPECT_TRUE(report.findings.front().divergent_ranks.empty());
}

TEST(RasJson, ReadsTheAnswerWithoutCommasBetweenMissingRanks) {
  const std::string missing = R"({"rank": 2, "host": "10.1.7.9" "pid": 12 "considered_dead": true}
      {"rank": 3, "host": "10.1.7.9", "pid": 13, "unresponsive": true, "considered_dead": false})";
  const Report report = judge(answer(communicator("0xaa", rank(0, 10, 105) + "," + rank(1, 11, 105), missing)));
  EXPECT_EQ(verdict_name(report.verdict), verdict_name(Verdict::kOtherCause));
  EXPECT_EQ(report.findings.front().divergent_ranks, std::vector<std::int32_t>{2});
}

TEST(RasJson, SaysWhatIsNoJson) {
  const std::string text = R"({"nccl_version": "2.28.9", "communicators": [}} )" + std::string(MappedFile::kPaddingBytes, '\0');
  EXPECT_FALSE(parse_ras_json({.path = "ras.json", .contents = {text.data(), text.size() - MappedFile::kPaddingBytes}}));
}

}  // namespace
}  // namespace lockstep
