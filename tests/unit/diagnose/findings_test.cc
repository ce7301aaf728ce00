// One small job for each way of going wrong, and for the ways that only look so.
#include <gtest/gtest.h>

#include "diagnose/diagnose.h"
#include "support/job_text.h"

namespace lockstep {
namespace {

using testing::make_job;

struct FindingCase {
  std::string name;
  testing::GroupList groups;
  std::vector<std::vector<std::string>> lines;
  Verdict verdict;
  std::string finding_class;             // of the first finding; "" = none expected
  std::vector<std::int32_t> divergent{};
  std::map<std::int32_t, std::string> ends{};
  std::string library{};
  friend void PrintTo(const FindingCase& c, std::ostream* os) { *os << c.name; }
};

class Diagnose : public ::testing::TestWithParam<FindingCase> {};

TEST_P(Diagnose, NamesVerdictClassAndRanks) {
  const FindingCase& given = GetParam();
  const Report report = diagnose(make_job(given.groups, given.lines, given.ends, given.library));
  EXPECT_EQ(verdict_name(report.verdict), verdict_name(given.verdict));
  if (given.finding_class.empty()) {
    EXPECT_TRUE(report.findings.empty()) << report.findings.front().title;
    return;
  }
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings.front().finding_class, given.finding_class);
  EXPECT_EQ(report.findings.front().divergent_ranks, given.divergent);
  EXPECT_NE(find_class(given.finding_class), nullptr);
  EXPECT_FALSE(report.findings.front().fix.empty());
}

const testing::GroupList kThree{{"g", {0, 1, 2}}};
const testing::GroupList kTwo{{"g", {0, 1}}};
const testing::GroupList kTwoGroups{{"a", {0, 1}}, {"b", {0, 1}}};

INSTANTIATE_TEST_SUITE_P(Table, Diagnose, ::testing::ValuesIn<FindingCase>({
    {"Clean", kThree, {{"barrier g"}, {"barrier g"}, {"barrier g"}}, Verdict::kConsistent, ""},
    {"OtherSize", kThree, {{"all_reduce g f32[4]"}, {"all_reduce g f32[5]"}, {"all_reduce g f32[4]"}},
     Verdict::kMismatch, "size_differs", {1}},
    {"EndOfAChainIsNoEmptyPart", kThree, {{"batch[isend 1 g f32[8]; irecv 1 g f32[8]]"},
     {"batch[isend 0 g f32[8]; irecv 0 g f32[8]; isend 2 g f32[8]; irecv 2 g f32[8]]"},
     {"batch[isend 1 g f32[8]; irecv 1 g f32[8]; isend 0 g f32[8]; irecv 0 g f32[8]]"}}, Verdict::kImbalance, "message_unmatched", {0, 2}, {}, "nccl"},
    {"EmptyPartsOfAnExchange", kThree, {{"batch[isend 1 g f32[8]; irecv 1 g f32[8]; isend 2 g f32[8]; irecv 2 g f32[8]]"},
     {"batch[isend 0 g f32[8]; irecv 0 g f32[8]; isend 2 g f32[8]; irecv 2 g f32[8]]"}, {}}, Verdict::kMismatch, "size_differs", {2}, {}, "nccl"},
    {"OtherRoot", kThree, {{"broadcast g f32[1] root=0"}, {"broadcast g f32[1] root=0"}, {"broadcast g f32[1] root=2"}},
     Verdict::kMismatch, "root_differs", {2}},
    {"OtherReduction", kThree, {{"all_reduce g f32[1] redop=max"}, {"all_reduce g f32[1] redop=sum"}, {"all_reduce g f32[1] redop=sum"}},
     Verdict::kMismatch, "reduction_differs", {0}},
    {"OtherGroupLists", {{"w", {0, 1, 2, 3}}}, {{"new_group w members=0,3"}, {"new_group w members=1,2"},
     {"new_group w members=1,2"}, {"new_group w members=0,3"}}, Verdict::kMismatch, "creation_differs", {0, 1, 2, 3}},
    {"SwappedCalls", kThree, {{"broadcast g f16[8] root=0", "broadcast g i64[8] root=0"},
     {"broadcast g i64[8] root=0", "broadcast g f16[8] root=0"}, {"broadcast g f16[8] root=0", "broadcast g i64[8] root=0"}},
     Verdict::kOrder, "order_differs", {1}},
    {"RankGatedCall", kThree, {{"all_reduce g f32[1] site=a.py:1", "barrier g site=save.py:9", "barrier g site=a.py:3"},
     {"all_reduce g f32[1] site=a.py:1", "barrier g site=a.py:3"}, {"all_reduce g f32[1] site=a.py:1", "barrier g site=a.py:3"}},
     Verdict::kImbalance, "rank_gated_call", {0}},
    {"FewerBatches", kThree, {{"all_reduce g f32[9]", "all_reduce g f32[9]", "all_reduce g f32[9]", "all_reduce g f32[9]"},
     {"all_reduce g f32[9]", "all_reduce g f32[9]", "all_reduce g f32[9]"},
     {"all_reduce g f32[9]", "all_reduce g f32[9]", "all_reduce g f32[9]", "all_reduce g f32[9]"}},
     Verdict::kImbalance, "uneven_iterations", {1}},
    {"LeavesOnAnError", kThree, {{"barrier g"}, {"barrier g", "broadcast g f32[1] root=1"}, {"barrier g", "broadcast g f32[1] root=1"}},
     Verdict::kImbalance, "early_exit", {0}, {{0, "exited 1"}}},
    {"DiesBetweenRounds", kThree,
     {{"all_reduce g f32[4] site=step@t.py:5", "all_reduce g f32[4] site=step@t.py:5", "all_reduce g f32[4] site=step@t.py:5"},
      {"all_reduce g f32[4] site=step@t.py:5", "all_reduce g f32[4] site=step@t.py:5"},
      {"all_reduce g f32[4] site=step@t.py:5", "all_reduce g f32[4] site=step@t.py:5", "all_reduce g f32[4] site=step@t.py:5"}},
     Verdict::kImbalance, "early_exit", {1}, {{1, "exited 1"}}},
    {"EndsInOrderAfterFewerRounds", kThree,
     {{"all_reduce g f32[4] site=step@t.py:5", "all_reduce g f32[4] site=step@t.py:5", "all_reduce g f32[4] site=step@t.py:5"},
      {"all_reduce g f32[4] site=step@t.py:5", "all_reduce g f32[4] site=step@t.py:5"},
      {"all_reduce g f32[4] site=step@t.py:5", "all_reduce g f32[4] site=step@t.py:5", "all_reduce g f32[4] site=step@t.py:5"}},
     Verdict::kImbalance, "count_differs_by_local_state", {1}},
    {"NeverCalls", kThree, {{}, {"barrier g"}, {"barrier g"}}, Verdict::kImbalance, "never_arrived", {0}},
    {"DoesNotJoinTheSplit", kThree, {{"barrier g", "split g color=0"}, {"barrier g"}, {"barrier g", "split g color=0"}},
     Verdict::kImbalance, "creation_not_joined", {1}},
    {"OrderAcrossGroups", kTwoGroups, {{"all_reduce a f32[1]", "all_reduce b f32[1]"}, {"all_reduce b f32[1]", "all_reduce a f32[1]"}},
     Verdict::kDeadlock, "order_across_communicators", {0, 1}},
    {"MakesNoGroup", {{"p", {0, 1, 2}}, {"w", {0, 1, 2}}},
     {{"new_group p members=0,2 state=entered"}, {"all_reduce w f32[1] state=entered"}, {"new_group p members=0,2 state=entered"}},
     Verdict::kDeadlock, "creation_not_joined", {1}, {{0, "running"}, {1, "running"}, {2, "running"}}},
    {"MakesNoSplit", {{"p", {0, 1, 2}}, {"w", {0, 1, 2}}},
     {{"split p color=0 state=entered"}, {"all_reduce w f32[1] state=entered"}, {"split p color=0 state=entered"}},
     Verdict::kDeadlock, "creation_not_joined", {1}, {{0, "running"}, {1, "running"}, {2, "running"}}},
    {"SplitsInAnotherOrder", {{"p", {0, 1, 2}}, {"w", {0, 1, 2}}},
     {{"split p color=0", "all_reduce w f32[1]"}, {"all_reduce w f32[1]", "split p color=0"}, {"split p color=0", "all_reduce w f32[1]"}},
     Verdict::kDeadlock, "order_across_communicators", {1}},
    {"WrongGroup", {{"a", {0, 1, 2}}, {"b", {0, 1, 2}}}, {{"broadcast a f32[3] root=0", "barrier b"},
     {"broadcast b f32[3] root=0", "barrier b"}, {"broadcast a f32[3] root=0", "barrier b"}},
     Verdict::kImbalance, "wrong_communicator", {1}},
    {"SendsTowardsEachOther", kTwo, {{"send 1 f32[1]", "recv 1 f32[1]"}, {"send 0 f32[1]", "recv 0 f32[1]"}},
     Verdict::kDeadlock, "message_order", {0, 1}},
    {"MessageNobodyReceives", kTwo, {{"send 1 object"}, {}}, Verdict::kImbalance, "message_unmatched", {0, 1}},
    {"MessageToTheWrongPeer", kThree, {{"send 2 f32[1]"}, {"recv 0 f32[1]"}, {}}, Verdict::kImbalance, "message_unmatched", {0}},
    {"MessageWithAnotherTag", kTwo, {{"send 1 f32[1] tag=5"}, {"recv 0 f32[1] tag=6"}}, Verdict::kDeadlock, "message_unmatched", {0, 1}},
    {"TagNobodySendsBeforeFinalize", kTwo,
     {{"send 1 f32[1] tag=5 state=completed", "finalize g state=entered flags=held"}, {"recv 0 f32[1] tag=6 state=entered flags=held"}},
     Verdict::kDeadlock, "message_unmatched", {0, 1}, {{0, "unknown"}, {1, "unknown"}}, "mpi"},
    {"PeerThatReceivesNothingBeforeFinalize", kThree,
     {{"finalize g state=entered flags=held"}, {"recv 2 f32[1] state=entered flags=held"},
      {"send 0 f32[1] state=completed", "finalize g state=entered flags=held"}},
     Verdict::kDeadlock, "message_unmatched", {2}, {{0, "unknown"}, {1, "unknown"}, {2, "unknown"}}, "mpi"},
    {"MessageThatMayFollowABarrier", kTwo,
     {{"barrier g state=entered flags=held"}, {"recv 0 f32[1] state=entered flags=held"}},
     Verdict::kDeadlock, "order_across_communicators", {0, 1}, {{0, "unknown"}, {1, "unknown"}}, "mpi"},
    {"GradientForActivation", kTwo, {{"send 1 grad"}, {"recv 0 act"}}, Verdict::kMismatch, "payload_differs", {0, 1}},
    {"ShorterMessage", kTwo, {{"send 1 f32[3]"}, {"recv 0 f32[4]"}}, Verdict::kMismatch, "message_differs", {0, 1}},
    {"KilledRank", kTwo, {{"barrier g", "barrier g"}, {"barrier g"}}, Verdict::kOtherCause, "peer_crashed", {1}, {{1, "killed 9"}}},
    {"AllInTheSameCall", kTwo, {{"all_reduce g f32[1] state=entered"}, {"all_reduce g f32[1] state=entered"}},
     Verdict::kOtherCause, "agreed_but_not_completed", {}, {{0, "running"}, {1, "running"}}},
    {"SkewOfOneInALiveJob", kTwo, {{"barrier g state=completed"}, {"barrier g state=entered"}},
     Verdict::kInsufficient, "unfinished_snapshot", {}, {{0, "running"}, {1, "running"}}},
    {"NoRecordOfOneRank", kThree, {{"barrier g"}, {"barrier g"}}, Verdict::kInsufficient, "evidence_missing", {2}},
    {"BufferedSendsInMpi", kTwo, {{"send 1 f32[1]", "recv 1 f32[1]"}, {"send 0 f32[1]", "recv 0 f32[1]"}},
     Verdict::kConsistent, "relies_on_buffering", {0, 1}, {}, "mpi"},
    {"SendsThatAWildcardMayHaveTaken", kTwo, {{"send 1 f32[3]", "send 1 f32[4]"}, {"recv any f32[3]", "recv 0 f32[4]"}},
     Verdict::kInsufficient, "evidence_missing", {}, {}, "mpi"},
    {"EvenOddSends", kTwo, {{"send 1 f32[1]", "recv 1 f32[1]"}, {"recv 0 f32[1]", "send 0 f32[1]"}}, Verdict::kConsistent, ""},
    {"OneBatchEach", kTwo, {{"batch[send 1 f32[1]; recv 1 f32[1]]"}, {"batch[send 0 f32[1]; recv 0 f32[1]]"}}, Verdict::kConsistent, ""},
    {"UnequalCountsOfAVCollective", kTwo, {{"all_gather_v g f32[1]"}, {"all_gather_v g f32[7]"}}, Verdict::kConsistent, ""},
    {"SitesThatDiffer", kTwo, {{"barrier g site=a.py:1"}, {"barrier g site=a.py:2"}}, Verdict::kConsistent, ""},
}), [](const auto& test) { return test.param.name; });

TEST(DiagnoseHang, TellsALoopThatRunsLongerByItsCallSite) {
  // The records end where the ranks hang. Both wait for each other; only one of the two calls was made before.
  const Report report = diagnose(make_job(
      kTwoGroups,
      {{"all_reduce a f32[1] site=norm@o.py:5 state=completed", "all_reduce a f32[1] site=norm@o.py:5 state=entered"},
       {"all_reduce a f32[1] site=norm@o.py:5 state=completed", "broadcast b f32[2] root=1 site=loss@e.py:9 state=entered"}},
      {{0, "running"}, {1, "running"}}));
  ASSERT_EQ(report.verdict, Verdict::kDeadlock);
  const Finding& finding = report.findings.front();
  EXPECT_EQ(finding.finding_class, "count_differs_by_local_state");
  EXPECT_EQ(finding.communicator->name, "a");
  EXPECT_EQ(finding.position->seq, 1U);
  EXPECT_EQ(finding.counts.front().by_rank, (std::map<std::int32_t, std::uint64_t>{{0, 2}, {1, 1}}));
  EXPECT_NE(finding.explanation.find("norm"), std::string::npos);
}

TEST(DiagnoseHang, CountsTheLinesBehindCallsOfOtherSizes) {
  // One kind of call, but of two lines of the program: as many calls in all, and not of each line.
  const Report report = diagnose(make_job(kTwo, {{"all_reduce g f32[9] site=backward@t.py:5", "all_reduce g f32[9] site=backward@t.py:5 state=entered"},
                                                {"all_reduce g f32[9] site=backward@t.py:5", "all_reduce g f32[1] site=log@t.py:8 state=entered"}},
                                          {{0, "running"}, {1, "running"}}));
  ASSERT_EQ(report.verdict, Verdict::kMismatch);
  std::map<std::string, std::map<std::int32_t, std::uint64_t>> counts;
  for (const CallCounts& count : report.findings.front().counts) counts[count.call_site] = count.by_rank;
  EXPECT_EQ(counts["backward (t.py:5)"], (std::map<std::int32_t, std::uint64_t>{{0, 2}, {1, 1}}));
  EXPECT_EQ(counts["log (t.py:8)"], (std::map<std::int32_t, std::uint64_t>{{0, 0}, {1, 1}}));
}

TEST(DiagnoseHang, DoesNotChooseBetweenExplanationsWithoutASign) {
  const Report report = diagnose(make_job(
      kTwoGroups, {{"all_reduce a f32[1] state=entered"}, {"all_reduce b f32[1] state=entered"}}, {{0, "running"}, {1, "running"}}));
  ASSERT_EQ(report.verdict, Verdict::kDeadlock);
  EXPECT_EQ(report.findings.front().finding_class, "order_across_communicators");
  EXPECT_NE(report.findings.front().explanation.find("either"), std::string::npos);
}

TEST(DiagnoseHang, CountsNoRankThatHasNotComeToTheCall) {
  // Ranks 1 and 2 stand in the same call as the others; only rank 0 is known to have gone on to a second one.
  const Report report = diagnose(make_job(
      kThree, {{"barrier g state=completed", "barrier g state=entered"}, {"barrier g state=entered"}, {"barrier g"}},
      {{0, "running"}, {1, "running"}}));
  ASSERT_EQ(report.verdict, Verdict::kImbalance);
  EXPECT_EQ(report.findings.front().divergent_ranks, (std::vector<std::int32_t>{0, 2}));
}

TEST(DiagnoseHang, SaysWhetherTheCallWasEnteredOrOnlyEnqueued) {
  for (const std::string state : {"entered", "enqueued"}) {
    const std::vector<std::string> calls{"all_reduce g f32[1] state=" + state, "device_sync state=entered"};
    const Report report = diagnose(make_job(kTwo, {calls, calls}, {{0, "running"}, {1, "running"}}, "nccl"));
    EXPECT_EQ(verdict_name(report.verdict), "other_cause");
    EXPECT_NE(report.findings.front().title.find("all members " + state), std::string::npos) << report.findings.front().title;
  }
}

TEST(DiagnosePotential, ReportsTheModelUnderWhichBatchesStall) {
  const Report report = diagnose(make_job({{"pp", {0, 1, 2}}}, {{"batch[send 1; send 2]"}, {"batch[recv 0]", "batch[send 2]"}, {"batch[recv 0; recv 1]"}}));
  EXPECT_EQ(report.verdict, Verdict::kConsistent);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].severity, Severity::kPotential);
  EXPECT_EQ(report.findings[0].models, std::vector<std::string>{"coupled"});
}

TEST(DiagnosePathSwap, SaysThatTheSameNumberIsMissingOnOneGroupAndSurplusOnAnother) {
  const std::vector<std::string> usual{"all_reduce t f32[8]", "all_reduce d f32[64]", "all_reduce t f32[8]", "all_reduce d f32[64]"};
  std::vector<std::string> other{"all_gather t f32[4]", "all_gather t f32[4]", "all_reduce t f32[8]", "all_reduce t f32[8]"};
  const Report report = diagnose(make_job({{"t", {0, 1, 2}}, {"d", {0, 1, 2}}}, {usual, other, usual}));
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].divergent_ranks, std::vector<std::int32_t>{1});
  EXPECT_NE(report.findings[0].explanation.find("rank 1 makes 2 calls too many on t and as many too few on d"), std::string::npos)
      << report.findings[0].explanation;
}

TEST(DiagnoseTwoFaults, TellsBoth) {
  const Report report = diagnose(make_job({{"a", {0, 1, 2}}, {"b", {0, 1, 2}}},
                                          {{"all_reduce a f32[1]", "broadcast b f32[1] root=0"},
                                           {"all_reduce a f32[2]", "broadcast b f32[1] root=0"},
                                           {"all_reduce a f32[1]", "broadcast b f32[1] root=1"}}));
  ASSERT_GE(report.findings.size(), 2U);
  EXPECT_EQ(report.findings[0].divergent_ranks, std::vector<std::int32_t>{1});
  EXPECT_EQ(report.findings[1].divergent_ranks, std::vector<std::int32_t>{2});
}

TEST(DiagnoseAction, NeverSendsPeopleToNodesForAnOrderOfCalls) {
  const Report report = diagnose(make_job(kTwo, {{"barrier g"}, {}}));
  EXPECT_EQ(report.action, Action::kFixCode);
  EXPECT_TRUE(report.action_ranks.empty());
}

/// Two pairs of one cycle differ in the same way: told once as the deadlock that it is.
TEST(Diagnose, CallsACycleOfTwoPairsThatDifferAlikeADeadlock) {
  const testing::GroupList groups{{"first", {0, 1}}, {"second", {2, 3}}, {"world", {0, 1, 2, 3}}};
  const auto twice = [](const std::string& group) {
    return std::vector<std::string>{"all_reduce " + group + " f32[1]", "all_reduce " + group + " f32[1]", "barrier world"};
  };
  const auto once = [](const std::string& group) {
    return std::vector<std::string>{"all_reduce " + group + " f32[1]", "barrier world"};
  };
  const Report report = diagnose(testing::make_job(groups, {twice("first"), once("first"), twice("second"), once("second")}));
  EXPECT_EQ(verdict_name(report.verdict), "deadlock");
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings.front().wait_for.size(), 4u);
}

}  // namespace
}  // namespace lockstep
