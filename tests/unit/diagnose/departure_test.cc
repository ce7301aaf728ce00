// Ranks that hold each other in calls that the other does not make: which of them left the path shows in what followed there before.
#include <gtest/gtest.h>

#include "diagnose/diagnose.h"
#include "support/job_text.h"

namespace lockstep {
namespace {

using Lines = std::vector<std::string>;

/// `times` rounds of the body, then `tail`: a record that ends where its rank stands.
Lines rounds(const Lines& body, int times, const Lines& tail) {
  Lines lines;
  for (int i = 0; i < times; ++i) lines.insert(lines.end(), body.begin(), body.end());
  lines.insert(lines.end(), tail.begin(), tail.end());
  return lines;
}

const std::string kData = "broadcast a f32[8] root=0 site=train.py:10";
const std::string kNorm = "all_reduce a f32[1] site=train.py:20";
const std::string kStep = "all_reduce b f32[9] site=train.py:30";
const std::string kSave = "all_gather b f32[2] site=save.py:5";
const Lines kBody{kData, kStep};
const Lines kInnerLoop{kData, kNorm, kNorm, kNorm, kStep};

const Lines kFirstStage{"send 1 f32[4] site=pipe.py:7", "recv 1 f32[4] site=pipe.py:8", kStep};
const Lines kSecondStage{"recv 0 f32[4] site=pipe.py:20", "send 0 f32[4] site=pipe.py:21", kStep};

struct DepartureCase {
  std::string name;
  std::vector<Lines> lines;
  std::string finding_class;
  std::string op;  ///< of the call that one side makes and the other does not
  std::vector<std::int32_t> divergent{};
  std::string told{};  ///< in the explanation
  friend void PrintTo(const DepartureCase& c, std::ostream* os) { *os << c.name; }
};

class DepartedRank : public ::testing::TestWithParam<DepartureCase> {};

TEST_P(DepartedRank, IsTheRankThatLeftThePath) {
  const DepartureCase& given = GetParam();
  std::vector<std::int32_t> ranks;
  std::map<std::int32_t, std::string> ends;
  for (std::size_t rank = 0; rank < given.lines.size(); ++rank) {
    ranks.push_back(static_cast<std::int32_t>(rank));
    ends[ranks.back()] = "running";
  }
  const testing::GroupList groups{{"a", ranks}, {"b", ranks}};
  const Report report = diagnose(testing::make_job(groups, given.lines, ends, "torch"));
  EXPECT_EQ(verdict_name(report.verdict), "deadlock");
  ASSERT_FALSE(report.findings.empty());
  const Finding& finding = report.findings.front();
  EXPECT_EQ(finding.finding_class, given.finding_class) << finding.explanation;
  ASSERT_TRUE(finding.position);
  EXPECT_EQ(finding.position->op, given.op) << finding.explanation;
  EXPECT_EQ(finding.divergent_ranks, given.divergent) << finding.explanation;
  EXPECT_NE(finding.explanation.find(given.told), std::string::npos) << finding.explanation;
}

INSTANTIATE_TEST_SUITE_P(Table, DepartedRank, ::testing::ValuesIn<DepartureCase>({
    // The broadcast is of another group than the step: without what went before, both readings are as good.
    {"OneRankSaves", {rounds(kBody, 2, {kData, kSave}), rounds(kBody, 2, {kData, "all_reduce a f32[1] site=train.py:20"})},
     "order_across_communicators", "all_gather", {0, 1}},
    {"OneRankSavesBeforeTheStep", {rounds({kData, kNorm, kStep}, 2, {kData, kSave}), rounds({kData, kNorm, kStep}, 2, {kData, kNorm}),
      rounds({kData, kNorm, kStep}, 2, {kData, kNorm})}, "rank_gated_call", "all_gather", {0}, "not true on ranks 1 and 2"},
    {"AllButOneSave", {rounds({kData, kNorm, kStep}, 2, {kData, kSave}), rounds({kData, kNorm, kStep}, 2, {kData, kSave}),
      rounds({kData, kNorm, kStep}, 2, {kData, kNorm})}, "call_skipped", "all_gather", {2}, "rank 2 goes on without it"},
    {"LeavesTheStepOut", {rounds(kBody, 3, {kData, kStep}), rounds(kBody, 3, {kData, kData}), rounds(kBody, 3, {kData, kStep})},
     "call_skipped", "all_reduce", {1}, "rank 1 goes on without it"},
    {"LeavesTheInnerLoopEarly", {rounds(kInnerLoop, 2, {kData, kNorm, kNorm, kStep}), rounds(kInnerLoop, 2, {kData, kNorm, kNorm, kNorm}),
      rounds(kInnerLoop, 2, {kData, kNorm, kNorm, kNorm})}, "call_skipped", "all_reduce", {0}, "on a "},
    {"StaysInTheInnerLoop", {rounds(kInnerLoop, 2, {kData, kNorm, kNorm, kNorm, kNorm}), rounds(kInnerLoop, 2, {kData, kNorm, kNorm, kNorm, kStep}),
      rounds(kInnerLoop, 2, {kData, kNorm, kNorm, kNorm, kStep})}, "count_differs_by_local_state", "all_reduce", {0},
     "the same line runs 10 times on rank 0 and 9 times on rank 1"},
    {"LeavesTheActivationOut", {rounds(kFirstStage, 2, {"recv 1 f32[4] site=pipe.py:8"}), rounds(kSecondStage, 2, {"recv 0 f32[4] site=pipe.py:20"})},
     "message_unmatched", "recv", {0, 1}, "rank 0 goes on without the send"},
    {"SendsNoGradient", {rounds(kFirstStage, 2, {"send 1 f32[4] site=pipe.py:7", "recv 1 f32[4] site=pipe.py:8"}),
      rounds(kSecondStage, 2, {"recv 0 f32[4] site=pipe.py:20", kStep})}, "message_unmatched", "recv", {0, 1}, "rank 1 goes on without the send"},
    {"FirstRoundTellsNothing", {{kData, kStep}, {kData, kNorm}}, "order_across_communicators", "all_reduce", {0, 1}, "either"},
}), [](const auto& test) { return test.param.name; });

/// Three ranks on one group; rank 1 comes to the call of another line.
Finding of_meeting(const Lines& usual, const Lines& of_rank_1) {
  const Report report = diagnose(testing::make_job({{"a", {0, 1, 2}}}, {usual, of_rank_1, usual},
                                                   {{0, "running"}, {1, "running"}, {2, "running"}}, "torch"));
  return report.findings.empty() ? Finding{} : report.findings.front();
}

TEST(Departed, ExplainsASizeThatDiffersBecauseOneRankIsARoundAhead) {
  const Lines body{"all_reduce a f32[8] site=train.py:10", "all_reduce a f32[2] site=train.py:20"};
  const Finding finding = of_meeting(rounds(body, 3, body), rounds(body, 3, {body[0], body[0]}));
  EXPECT_EQ(finding.finding_class, "size_differs");
  EXPECT_NE(finding.explanation.find("rank 1 goes on without it"), std::string::npos) << finding.explanation;
  EXPECT_EQ(finding.fix.find("agree on the size"), std::string::npos) << finding.fix;
}

TEST(Departed, AsksForOnePathWhereTwoLinesMeetForTheFirstTime) {
  const Finding finding = of_meeting({"all_reduce a f32[8] site=train.py:10"}, {"all_reduce a f32[2] site=train.py:20"});
  EXPECT_NE(finding.fix.find("same branch"), std::string::npos) << finding.fix;
}

TEST(Departed, LeavesTwoBranchesOfARootedCallAlone) {
  const Finding finding = of_meeting({"scatter a f32[8] root=0 site=train.py:10"}, {"scatter a f32[8] root=1 site=train.py:12"});
  EXPECT_EQ(finding.finding_class, "root_differs");
  EXPECT_NE(finding.fix.find("root"), std::string::npos) << finding.fix;
}

/// A ring in which rank 2 sends to the neighbour that it receives from.
TEST(WrongPeer, IsNamedFromWhatTheRanksStandIn) {
  const auto ring = [](int to, int from) {
    return Lines{"barrier a", "isend " + std::to_string(to) + " a f32[4] handle=s site=ring.py:8",
                 "irecv " + std::to_string(from) + " a f32[4] handle=r site=ring.py:8", "wait handle=s", "wait handle=r"};
  };
  Lines next = ring(2, 0);
  next.emplace_back("barrier a site=ring.py:9");
  const Report report = diagnose(testing::make_job({{"a", {0, 1, 2}}}, {ring(1, 2), next, ring(1, 1)},
                                                   {{0, "running"}, {1, "running"}, {2, "running"}}, "gloo"));
  EXPECT_EQ(verdict_name(report.verdict), "deadlock");
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings.front().finding_class, "message_unmatched") << report.findings.front().explanation;
  EXPECT_EQ(report.findings.front().divergent_ranks, std::vector<std::int32_t>{2});
}

}  // namespace
}  // namespace lockstep
