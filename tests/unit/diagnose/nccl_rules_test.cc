// The rules of NCCL one by one: what is told, how severe it is, and that what NCCL allows is not told.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <ostream>

#include "diagnose/diagnose.h"
#include "support/job_text.h"

namespace lockstep {
namespace {

struct RuleCase {
  std::string name;
  std::string head;                                ///< keys beside groups and ranks, each with a comma behind it
  std::vector<std::vector<std::string>> programs;  ///< by rank; groups a and b are all ranks
  std::string expected;                            ///< "severity class" of the first finding; "" = consistent, nothing told
};
void PrintTo(const RuleCase& c, std::ostream* os) { *os << c.name; }

Job job_of(const RuleCase& c) {
  std::string members;
  std::string ranks;
  for (std::size_t rank = 0; rank < c.programs.size(); ++rank) {
    members += (rank == 0 ? "" : ",") + std::to_string(rank);
    ranks += (rank == 0 ? "\"" : ",\"") + std::to_string(rank) + "\": [";
    for (std::size_t i = 0; i < c.programs[rank].size(); ++i) ranks += (i == 0 ? "\"" : ",\"") + c.programs[rank][i] + "\"";
    ranks += "]";
  }
  return testing::job_from_json("{\"library\": \"nccl\", " + c.head + "\"groups\": {\"a\": [" + members + "], \"b\": [" + members +
                                "]}, \"ranks\": {" + ranks + "}}");
}

class NcclRules : public ::testing::TestWithParam<RuleCase> {};

TEST_P(NcclRules, TellsWhatTheRuleSays) {
  const Report report = diagnose(job_of(GetParam()));
  std::string told;
  if (!report.findings.empty()) {
    told = std::string(severity_name(report.findings[0].severity)) + " " + report.findings[0].finding_class;
  }
  EXPECT_EQ(told, GetParam().expected) << (report.findings.empty() ? "" : report.findings[0].explanation);
  if (GetParam().expected.empty()) {
    EXPECT_EQ(report.verdict, Verdict::kConsistent);
  }
}

const std::vector<std::string> kAThenB{"all_reduce a f32[8] stream=s", "all_reduce b f32[8] stream=t"};
const std::vector<std::string> kBThenA{"all_reduce b f32[8] stream=t", "all_reduce a f32[8] stream=s"};

INSTANTIATE_TEST_SUITE_P(Table, NcclRules, ::testing::ValuesIn<RuleCase>({
    {"AsManyBytesOfAnotherType", "", {{"all_gather a f32[2]"}, {"all_gather a f16[4]"}}, "contract_violation datatype_differs"},
    {"OtherBytesOfAnotherType", "", {{"all_gather a f32[2]"}, {"all_gather a f16[2]"}}, "certain datatype_differs"},
    {"ReductionOfAnotherType", "", {{"all_reduce a f32[2]"}, {"all_reduce a i32[2]"}}, "certain datatype_differs"},
    {"MessageOfAsManyBytes", "", {{"send 1 a f32[2]"}, {"recv 0 a f16[4]"}}, "contract_violation message_differs"},
    {"AllZeroIsNoCall", "", {{"all_reduce a f32[0]", "stream_sync"}, {"all_reduce a f32[0]", "stream_sync"}}, ""},
    {"ZeroInAnotherOrderAcrossCommunicators", "", {{"all_gather a f32[0]", "reduce b f32[1] root=0"}, {"reduce b f32[1] root=0", "all_gather a f32[0]"}},
     "contract_violation order_across_communicators"},
    {"ZeroInOneOrderAcrossCommunicators", "", {{"all_gather a f32[0]", "reduce b f32[1] root=0"}, {"all_gather a f32[0]", "reduce b f32[1] root=0"}}, ""},
    {"AnotherOrderInRecordsThatMayGoOn", "\"ends\": {\"0\": \"unknown\", \"1\": \"unknown\"}, ",
     {{"all_reduce a f32[8]", "broadcast a f32[2] root=0"}, {"broadcast a f32[2] root=0", "all_reduce a f32[8]"}}, "certain order_differs"},
    {"CallsThatComeAgainInRecordsThatMayGoOn", "\"ends\": {\"0\": \"unknown\", \"1\": \"unknown\"}, ",
     {{"all_reduce a f32[8]", "broadcast a f32[2] root=0", "all_reduce a f32[8]"}, {"broadcast a f32[2] root=0", "all_reduce a f32[8]", "broadcast a f32[2] root=0"}},
     "certain call_skipped"},
    {"ZeroOnOneRank", "", {{"all_reduce a f32[0]"}, {"all_reduce a f32[4]"}}, "certain size_differs"},
    {"ZeroLeftOut", "", {{"all_reduce a f32[0]"}, {}}, "contract_violation never_arrived"},
    {"ZeroLeftOutInTheMiddle", "", {{"all_gather a f32[0]", "all_reduce a f32[8]"}, {"all_reduce a f32[8]"}, {"all_gather a f32[0]", "all_reduce a f32[8]"}},
     "contract_violation call_skipped"},
    {"ZeroAndAnotherLeftOut", "", {{"all_gather a f32[0]", "all_reduce a f32[8]", "all_reduce a f32[8]"}, {"all_reduce a f32[8]"}, {"all_gather a f32[0]", "all_reduce a f32[8]", "all_reduce a f32[8]"}},
     "certain call_skipped"},
    {"ZeroMeetsAnotherZero", "", {{"all_gather a f32[0]", "all_reduce a f32[8]"}, {"all_reduce a f32[0]", "all_reduce a f32[8]"}}, "contract_violation kind_differs"},
    {"ZeroBesideACall", "", {{"all_reduce a f32[0]", "all_reduce a f32[4]"}, {"all_reduce a f32[4]", "all_reduce a f32[0]"}}, "contract_violation order_differs"},
    {"SplitIsNotOrderedAmongLaunches", "", {{"split a color=0", "all_reduce a f32[8]"}, {"all_reduce a f32[8]", "split a color=0"}},
     "contract_violation order_differs"},
    {"SplitHoldsTheHost", "", {{"split a color=0", "all_reduce b f32[8]"}, {"all_reduce b f32[8]", "device_sync", "split a color=0"}},
     "certain order_across_communicators"},
    {"SplitDoesNotWaitForTheDevice", "", {{"split a color=0", "all_reduce b f32[8]"}, {"all_reduce b f32[8]", "split a color=0"}}, ""},
    {"OneCommunicatorOnTwoStreams", "", {{"all_reduce a f32[8] stream=s", "all_reduce b f32[8] stream=s", "all_reduce a f32[8] stream=t"},
                                         {"all_reduce a f32[8] stream=s", "all_reduce a f32[8] stream=t", "all_reduce b f32[8] stream=s"}}, "potential order_across_communicators"},
    {"IssueOrderOfACommunicatorAcrossStreams", "",
     {{"recv 1 a f32[8] stream=s", "send 1 a f32[8] stream=t"}, {"recv 0 a f32[8] stream=s", "send 0 a f32[8] stream=t"}}, "certain message_order"},
    {"StreamsOfTwoCommunicatorsAreFree", "", {{"recv 1 a f32[8] stream=s", "send 1 b f32[8] stream=t"}, {"recv 0 b f32[8] stream=s", "send 0 a f32[8] stream=t"}}, "potential message_order"},
    {"UsedAfterDestroy", "", {{"all_reduce a f32[8]", "destroy a", "all_reduce a f32[8]"}, {"all_reduce a f32[8]", "destroy a", "all_reduce a f32[8]"}},
     "undefined_behaviour used_after_end"},
    {"MadeAgain", "", {{"init a key=0", "destroy a", "init a key=0"}, {"init a key=1", "destroy a", "init a key=1"}}, ""},
    {"SizesAtInit", "", {{"init a key=0 counts=3"}, {"init a key=1 counts=2"}, {"init a key=2 counts=3"}}, "certain init_ranks_differ"},
    {"EmptyMessageMustBeMatched", "", {{"send 1 a f32[0]"}, {}}, "certain message_unmatched"},
    {"SortedGroup", "", {{"batch[all_reduce a f32[4096]; all_reduce a f32[8]]"}, {"batch[all_reduce a f32[8]; all_reduce a f32[4096]]"}},
     "contract_violation order_differs"},
    {"OneBinIsNotSorted", "", {{"batch[all_reduce a f32[1000]; all_reduce a f32[1001]]"}, {"batch[all_reduce a f32[1001]; all_reduce a f32[1000]]"}},
     "certain order_differs"},
    {"RootsOfOneGroupSince229", "\"library_version\": \"2.29.2\", ",
     {{"batch[broadcast a f32[8] root=0; broadcast a f32[8] root=1]"}, {"batch[broadcast a f32[8] root=1; broadcast a f32[8] root=0]"}},
     "contract_violation order_differs"},
    {"RootsOfOneGroupBefore", "\"library_version\": \"2.28.9\", ",
     {{"batch[broadcast a f32[8] root=0; broadcast a f32[8] root=1]"}, {"batch[broadcast a f32[8] root=1; broadcast a f32[8] root=0]"}},
     "certain order_differs"},
    {"GathersToSeveralRootsAreMessages", "",
     {{"batch[gather a f32[8] root=0; gather a f32[4] root=1]"}, {"batch[gather a f32[4] root=1; gather a f32[8] root=0]"}}, "contract_violation order_differs"},
    {"ScattersFromSeveralRootsAreMessages", "",
     {{"batch[scatter a f32[8] root=0; scatter a f32[4] root=1]"}, {"batch[scatter a f32[4] root=1; scatter a f32[8] root=0]"}}, "contract_violation order_differs"},
    {"GathersToOneRootShareTheirPairs", "",
     {{"batch[gather a f32[8] root=0; gather a f32[4096] root=0]"}, {"batch[gather a f32[4096] root=0; gather a f32[8] root=0]"}}, "certain order_differs"},
    {"GatherAndScatterShareAPair", "",
     {{"batch[gather a f32[8] root=0; scatter a f32[8] root=1]"}, {"batch[scatter a f32[8] root=1; gather a f32[8] root=0]"}}, "certain order_differs"},
    {"MessagesComeBehindTheCollectivesOfAGroup", "",
     {{"batch[gather a f32[8] root=0; all_reduce a f32[8]]"}, {"batch[all_reduce a f32[8]; gather a f32[8] root=0]"}}, "contract_violation order_differs"},
    {"OneOfSeveralRootsLeftOut", "\"library_version\": \"2.29.2\", ",
     {{"batch[broadcast a f32[8] root=0; broadcast a f32[8] root=1]", "barrier b"}, {"batch[broadcast a f32[8] root=0]", "barrier b"}}, "certain call_skipped"},
    {"OneOfSeveralRootsOfAnotherCount", "\"library_version\": \"2.29.2\", ",
     {{"batch[broadcast a f32[8] root=0; broadcast a f32[8] root=1]"}, {"batch[broadcast a f32[8] root=0; broadcast a f32[9] root=1]"}}, "certain size_differs"},
    {"EveryRootItsOwnCount", "", {{"batch[broadcast a f32[8] root=0; broadcast a f32[900] root=1]"}, {"batch[broadcast a f32[8] root=0; broadcast a f32[900] root=1]"}}, ""},
    {"GroupOfOneCallIsTheCall", "", {{"batch[all_gather a f32[0]]", "batch[all_reduce a f32[8]]"}, {"all_gather a f32[0]", "all_reduce a f32[8]"}}, ""},
    {"OtherGroupBoundaries", "", {{"batch[all_reduce a f32[8]; all_reduce a f32[8]]"}, {"all_reduce a f32[8]", "all_reduce a f32[8]"}},
     "contract_violation group_partition_differs"},
    {"FactorsOfPreMulSumAreFree", "", {{"all_reduce a f32[8] redop=premul_sum(0.5)"}, {"all_reduce a f32[8] redop=premul_sum(0.25)"}}, ""},
    {"OtherOrderOnOtherStreams", "\"library_version\": \"2.28.9\", ", {kAThenB, kBThenA}, "potential order_across_communicators"},
    {"OtherOrderBeforeTheImplicitOne", "\"library_version\": \"2.20.5\", ", {kAThenB, kBThenA}, "contract_violation order_across_communicators"},
    {"OtherOrderWithImplicitOrder", "\"launch_order\": \"implicit\", ", {kAThenB, kBThenA}, "certain order_across_communicators"},
    {"HostWaitsBetween", "", {{kAThenB[0], "stream_sync stream=s", kAThenB[1]}, {kBThenA[0], "device_sync", kBThenA[1]}},
     "certain order_across_communicators"},
    {"HostWaitOfOneRankOnly", "\"library_version\": \"2.28.9\", ", {{kAThenB[0], "stream_sync stream=s", kAThenB[1]}, kBThenA}, "potential order_across_communicators"},
    {"MessagesOutsideAGroup", "", {{"send 1 a f32[8]", "recv 1 a f32[8]"}, {"send 0 a f32[8]", "recv 0 a f32[8]"}}, "contract_violation message_order"},
    {"MessagesInAGroup", "", {{"batch[send 1 a f32[8]; recv 1 a f32[8]]"}, {"batch[send 0 a f32[8]; recv 0 a f32[8]]"}}, ""},
    {"SelfMessageOutsideAGroup", "", {{"send 0 a f32[8]", "recv 0 a f32[8]"}, {}}, "certain self_message_unpaired"},
    {"CapturedAndNeverLaunched", "", {{"all_reduce a f32[8] flags=captured handle=g"}, {"all_reduce a f32[8]"}}, "certain never_arrived"},
    {"GraphAgainstDirectCall", "", {{"all_reduce a f32[8] flags=captured handle=g", "graph_launch handle=g"}, {"all_reduce a f32[8]"}},
     "contract_violation capture_differs"},
    {"RefusedCall", "", {{"all_reduce a f32[8] result=4"}, {"all_reduce a f32[8]"}, {"all_reduce a f32[8]"}}, "certain call_refused"},
    {"RefusedByEveryone", "", {{"all_reduce a f32[8] result=4"}, {"all_reduce a f32[8] result=4"}}, ""},
    {"RefusedMessage", "", {{"send 1 a f32[8] result=4"}, {"recv 0 a f32[8]"}}, "certain call_refused"},
    {"RefusedMessageToItself", "", {{"send 0 a f32[8] result=5"}, {}}, "certain self_message_unpaired"},
    {"SignalsThatNobodySends", "", {{"signal a peer=1", "put_signal a f32[8] peer=1"}, {"wait_signal a [2]", "wait_signal a [1]"}}, "certain message_unmatched"},
    {"AsManySignalsAsAreWaitedFor", "", {{"signal a peer=1", "put_signal a f32[8] peer=1"}, {"wait_signal a [2]"}}, "note evidence_missing"},
    {"SignalsThatCame", "", {{"signal a peer=1", "put_signal a f32[8] peer=1"}, {"wait_signal a [2] state=completed"}}, ""},
    {"SignalsOfARecordThatMayGoOn", "\"ends\": {\"0\": \"unknown\"}, ", {{"signal a peer=1"}, {"wait_signal a [2]"}}, "note unfinished_snapshot"},
    {"SignalOfAnotherPeer", "", {{"signal a peer=1"}, {"wait_signal a [1] peer=2"}, {}}, "certain message_unmatched"},
    {"SignalOfAPeerThatMayGoOn", "\"ends\": {\"2\": \"unknown\"}, ", {{"signal a peer=1"}, {"wait_signal a [1] peer=2"}, {}}, "note unfinished_snapshot"},
    {"SignalsOfAPeerWhereAnotherMayGoOn", "\"ends\": {\"0\": \"unknown\"}, ", {{}, {"wait_signal a [2] peer=2"}, {"signal a peer=1"}}, "certain message_unmatched"},
    {"SignalsOfSeveralPeersInOneWait", "", {{"signal a peer=1"}, {"wait_signal a [2]"}, {"signal a peer=1"}}, "note evidence_missing"},
    {"SignalsToNobodyKnown", "", {{"signal a"}, {"wait_signal a [2]"}}, "note evidence_missing"},
    {"InProgressIsNoError", "", {{"all_reduce a f32[8] result=7"}, {"all_reduce a f32[8]"}}, ""},
    {"TwoThreads", "", {{"all_reduce a f32[8] flags=thread_unsafe"}, {"all_reduce a f32[8]"}}, "contract_violation threads_share_communicator"},
    {"InitNotJoined", "", {{"init a"}, {"init a"}, {}}, "certain creation_not_joined"},
    {"SplitWithoutNoColour", "", {{"split a color=0"}, {"split a color=0"}, {}}, "certain creation_not_joined"},
    {"ShrinkOfThoseThatStay", "", {{"shrink a members=0,1"}, {"shrink a exclude=2"}, {}}, ""},
    {"CreationThatOneRankLabels", "", {{"new_group a members=0,1 label=grid thread=main"}, {"new_group a members=0,1"}}, ""},
    {"ShrinkThatOneRankLabels", "", {{"shrink a thread=main"}, {"shrink a"}}, ""},
    {"ShrinkNotJoined", "", {{"shrink a exclude=3"}, {"shrink a exclude=3"}, {}, {}}, "certain creation_not_joined"},
    {"ShrinkOfOtherRanks", "", {{"shrink a exclude=3"}, {"shrink a exclude=3"}, {"shrink a exclude=3,1"}, {}}, "certain creation_differs"},
    {"ShrinkIntoTwoThatPart", "", {{"shrink a members=0,1"}, {"shrink a members=0,1"}, {"shrink a members=2,3"}, {"shrink a members=2,3"}}, ""},
    {"UnequalPairs", "", {{"all_to_all_v a f32 counts=1,2 recv_counts=1,3"}, {"all_to_all_v a f32 counts=4,1 recv_counts=2,1"}}, "certain size_differs"},
    {"EqualPairs", "", {{"all_to_all_v a f32 counts=1,2 recv_counts=1,3"}, {"all_to_all_v a f32 counts=3,1 recv_counts=2,1"}}, ""},
}), [](const auto& test) { return test.param.name; });

Report report_on(const std::vector<std::vector<std::string>>& programs, const std::string& head = "") {
  return diagnose(job_of({.name = "", .head = head, .programs = programs, .expected = ""}));
}

TEST(NcclRefusal, LeadsAndIsAMismatchWhereTheArgumentsDiffer) {
  const std::vector<std::string> right{"broadcast a f32[8] root=1", "all_reduce b f32[1]"};
  for (const auto& [wrong, verdict] : {std::pair("broadcast a f32[8] result=4", Verdict::kMismatch),
                                       std::pair("broadcast a f32[8] root=1 result=4", Verdict::kImbalance)}) {
    const Report report = report_on({right, right, {wrong}});
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(report.verdict, verdict) << wrong;
    EXPECT_EQ(report.findings[0].finding_class, "call_refused");
    EXPECT_EQ(report.findings[0].communicator->name, "a");
    EXPECT_EQ(report.findings[0].divergent_ranks, std::vector<std::int32_t>{2});
  }
}

TEST(NcclInit, MembersGivenTwiceAreOneFinding) {
  const Report report = report_on({{"init a key=0"}, {"init a key=0"}, {"init a key=1"}, {"init a key=1"}});
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].divergent_ranks, (std::vector<std::int32_t>{0, 1, 2, 3}));
}

/// Every rank of three to all others, each part of two elements; what is empty is left out, as torch does.
std::vector<std::string> exchange_of(const std::vector<int>& parts) {
  std::string line = "batch[";
  for (std::size_t peer = 0; peer < parts.size(); ++peer) {
    if (parts[peer] == 0) continue;
    if (line.back() != '[') line += "; ";
    line += "send " + std::to_string(peer) + " a f32[2]; recv " + std::to_string(peer) + " a f32[2]";
  }
  return line == "batch[" ? std::vector<std::string>{} : std::vector<std::string>{line + "]"};
}

TEST(NcclShrink, ListsThatDifferAreTheCauseOfWhatWaits) {
  const std::string keeps_three = "shrink a exclude=3 state=entered";
  const Report report = report_on({{keeps_three}, {keeps_three}, {"shrink a exclude=3,1 state=entered"}, {}},
                                  R"("ends": {"0": "killed 9", "1": "killed 9", "2": "killed 9"}, )");
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].finding_class, "creation_differs");
  EXPECT_NE(report.verdict, Verdict::kOrder) << "there is nothing to put in another order";
  EXPECT_EQ(report.findings[0].divergent_ranks, std::vector<std::int32_t>{2});
  EXPECT_EQ(report_on({{"shrink a exclude=2"}, {}, {}}).findings.at(0).fix.find("every rank of the parent"), std::string::npos);
}

/// The records that a grow from two members leaves: those that are to come are on no communicator.
Report report_on_grow(const std::string& more_ranks, const std::string& ends, int size = 4,
                      const std::optional<Observation>& seen = std::nullopt) {
  const std::string line = "\"all_reduce two f32[4] state=enqueued\", \"grow two counts=" + std::to_string(size) + " flags=held state=entered\"";
  return diagnose(testing::job_from_json(R"({"library": "nccl", "groups": {"two": [0,1]}, "ranks": {"0": [)" + line + R"(], "1": [)" + line + "]" +
                                         more_ranks + R"(}, "ends": {"0": "unknown", "1": "unknown")" + ends + "}}"), seen);
}

TEST(NcclGrow, WaitsForThoseWhoDoNotCome) {
  const std::string comes = R"(["ncclCommGrow ? counts=4 flags=held state=entered"])";
  const Report one = report_on_grow(R"(, "2": )" + comes + R"(, "3": [])", R"(, "2": "unknown", "3": "exited 0")");
  ASSERT_FALSE(one.findings.empty());
  EXPECT_EQ(one.verdict, Verdict::kImbalance);
  EXPECT_EQ(one.findings[0].finding_class, "creation_not_joined");
  EXPECT_EQ(one.findings[0].divergent_ranks, std::vector<std::int32_t>{3});
  EXPECT_NE(one.findings[0].title.find("ranks 0-2 stand in the grow of two [0,1] to 4 ranks, and 1 of those"), std::string::npos) << one.findings[0].title;

  const Report two = report_on_grow(R"(, "2": [], "3": [])", R"(, "2": "exited 0", "3": "exited 1")");
  EXPECT_EQ(two.findings.at(0).divergent_ranks, (std::vector<std::int32_t>{2, 3}));
  EXPECT_EQ(two.findings.at(0).severity, Severity::kCertain);

  const Report killed = report_on_grow(R"(, "2": [], "3": [])", R"(, "2": "exited 0", "3": "killed 9")");
  EXPECT_EQ(killed.verdict, Verdict::kOtherCause);
  EXPECT_EQ(killed.findings.at(0).finding_class, "peer_crashed");
  EXPECT_EQ(killed.findings.at(0).divergent_ranks, std::vector<std::int32_t>{3});

  const Report some = report_on_grow(R"(, "2": [], "3": [], "4": [])", R"(, "2": "exited 0", "3": "exited 0", "4": "exited 0")");
  EXPECT_EQ(some.verdict, Verdict::kImbalance);
  EXPECT_TRUE(some.findings.at(0).divergent_ranks.empty()) << "which two of the three were meant is not known";
}

TEST(NcclGrow, NobodyIsAccusedWhoseRecordIsNotThere) {
  const Report report = report_on_grow("", "");
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.verdict, Verdict::kInsufficient);
  EXPECT_EQ(report.findings[0].finding_class, "creation_not_joined");
  EXPECT_NE(report.findings[0].title.find("2 of those that are to come have not joined"), std::string::npos) << report.findings[0].title;
}

TEST(NcclGrow, WhoIsThereMayComeYet) {
  const std::string running = R"(, "2": "running", "3": "running")";
  EXPECT_EQ(report_on_grow(R"(, "2": [], "3": [])", running).verdict, Verdict::kInsufficient);
  const Observation advances{.state = ProgressState::kAdvancing, .moved = {2, 3}};
  const Report moving = report_on_grow(R"(, "2": [], "3": [])", running, 4, advances);
  EXPECT_TRUE(std::ranges::none_of(moving.findings, [](const Finding& finding) { return finding.finding_class == "creation_not_joined"; }));
  const Report stands = report_on_grow(R"(, "2": [], "3": [])", running, 4, Observation{.state = ProgressState::kStalled, .stalled_for_s = 20});
  EXPECT_EQ(stands.verdict, Verdict::kImbalance);
  EXPECT_EQ(stands.findings.at(0).severity, Severity::kContractViolation);
}

TEST(NcclGrow, EveryoneIsThere) {
  const Report report = report_on_grow(R"(, "2": ["ncclCommGrow ? counts=3 flags=held state=entered"])", R"(, "2": "unknown")", 3);
  EXPECT_TRUE(std::ranges::none_of(report.findings, [](const Finding& finding) { return finding.finding_class == "creation_not_joined"; }));
}

TEST(NcclMessages, ARankThatDiffersWithItselfIsNamedOnce) {
  const Report report = report_on({{"batch[send 0 a f32[4]; recv 0 a f32[5]]"}, {}});
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].finding_class, "message_differs");
  EXPECT_EQ(report.findings[0].divergent_ranks, std::vector<std::int32_t>{0});
}

TEST(NcclExchange, EmptyPartsAreSizes) {
  const Report report = report_on({exchange_of({1, 1, 1}), exchange_of({0, 0, 0}), exchange_of({1, 1, 1})});
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.verdict, Verdict::kMismatch);
  EXPECT_EQ(report.findings[0].finding_class, "size_differs");
  EXPECT_EQ(report.findings[0].divergent_ranks, std::vector<std::int32_t>{1});
}

TEST(NcclExchange, MessagesOfAFewAreNone) {
  const Report report = report_on({exchange_of({0, 1, 1}), {}, {"batch[send 0 a f32[2]; recv 0 a f32[2]]"}});
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.verdict, Verdict::kImbalance);
  EXPECT_EQ(report.findings[0].finding_class, "message_unmatched");
}

TEST(MpiFinalize, IsTheLastCallOfARank) {
  const Job job = testing::job_from_json(R"({"library": "mpi", "groups": {"w": [0,1,2], "a": [0,1,2]}, "ranks": {
    "0": ["gather a f32[8] root=0 state=entered"], "1": ["gather a f32[8] root=0", "finalize w state=entered"], "2": ["finalize w state=entered"]},
    "ends": {"0": "unknown", "1": "unknown", "2": "unknown"}})");
  const Report report = diagnose(job);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.verdict, Verdict::kDeadlock);
  EXPECT_EQ(report.findings[0].finding_class, "never_arrived");
  EXPECT_EQ(report.findings[0].divergent_ranks, std::vector<std::int32_t>{2});
}

/// `{}` of a gather of MPI is the call of rank 1; the root expects two halves of rank 0 and three floats of rank 1.
struct GatherCase {
  std::string name;
  std::string call;
  std::string finding;
};
void PrintTo(const GatherCase& c, std::ostream* os) { *os << c.name; }
class CountsOfMpi : public ::testing::TestWithParam<GatherCase> {};

TEST_P(CountsOfMpi, AreComparedBetweenTwoMembers) {
  const Job job = testing::job_from_json(fmt::format(R"({{"library": "mpi", "groups": {{"a": [0,1,2]}}, "ranks": {{
    "0": ["gather_v a u8[0] root=2"], "1": ["{}"], "2": ["gather_v a f32 root=2 counts=0,3,0"]}}}})", GetParam().call));
  const Report report = diagnose(job);
  std::string first;
  if (!report.findings.empty()) first = fmt::format("{} {}", severity_name(report.findings[0].severity), report.findings[0].finding_class);
  EXPECT_EQ(first, GetParam().finding);
}

INSTANTIATE_TEST_SUITE_P(Table, CountsOfMpi, ::testing::ValuesIn(std::vector<GatherCase>{
    {"Equal", "gather_v a f32[3] root=2", ""},
    {"Fewer", "gather_v a f32[2] root=2", "certain size_differs"},
    {"AnotherType", "gather_v a f64[3] root=2", "certain datatype_differs"},
    {"AnotherTypeAndCount", "gather_v a f64[4] root=2", "certain size_differs"},
    {"TypeWithoutASize", "gather_v a MPI_PACKED[12] root=2", ""},
}), [](const auto& test) { return test.param.name; });

TEST(NcclInit, RankThatIsSeenElsewhereIsToldOnlyAfterASecondLook) {
  const Job job = testing::job_from_json(R"({"library": "nccl", "groups": {"a": [0,1,2]}, "ranks": {
    "0": ["init a key=0 state=entered"], "1": ["init a key=1 state=entered"], "2": []},
    "ends": {"0": "running", "1": "running", "2": "running"}})");
  EXPECT_EQ(diagnose(job).verdict, Verdict::kInsufficient);
  const Report report = diagnose(job, Observation{.state = ProgressState::kStalled, .stalled_for_s = 60});
  EXPECT_EQ(report.verdict, Verdict::kImbalance);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].finding_class, "never_arrived");
  EXPECT_EQ(report.findings[0].divergent_ranks, std::vector<std::int32_t>{2});
}

/// A program that mpirun starts: calls of both libraries in one process.
class MixedLibraries : public ::testing::Test {
 protected:
  static Report check(const std::string& first, const std::string& second) {
    return diagnose(testing::job_from_json(R"({"library": "nccl", "groups": {"world": [0,1], "a": [0,1]}, "libraries": {"world": "mpi"}, "ranks": {
      "0": [)" + first + R"(], "1": [)" + second + "]}}"));
  }
};

TEST_F(MixedLibraries, CallsOfMpiHoldTheHostAndThoseOfNcclDoNot) {
  // Enqueued and left behind: the barrier is reached by both.
  EXPECT_EQ(check(R"("all_reduce a f32[8]", "barrier world", "stream_sync")", R"("barrier world", "all_reduce a f32[8]", "stream_sync")").verdict,
            Verdict::kConsistent);
  // Waited for on the device: rank 1 stands in the barrier and does not issue it.
  const Report report = check(R"("all_reduce a f32[8]", "stream_sync", "barrier world")", R"("barrier world", "all_reduce a f32[8]", "stream_sync")");
  EXPECT_EQ(report.verdict, Verdict::kDeadlock);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].severity, Severity::kCertain);
}

TEST_F(MixedLibraries, EmptyCollectivesOfMpiAreCalls) {
  EXPECT_EQ(check(R"("all_reduce a f32[0]")", "").findings.at(0).severity, Severity::kContractViolation);
  EXPECT_EQ(check(R"("all_reduce world f32[0]")", "").findings.at(0).severity, Severity::kCertain);
}

TEST_F(MixedLibraries, MessagesOfMpiMatchByTag) {
  EXPECT_EQ(check(R"("send 1 world f32[8] tag=1", "send 1 world f32[8] tag=2")", R"("recv 0 world f32[8] tag=2", "recv 0 world f32[8] tag=1")").verdict,
            Verdict::kConsistent);
  const Report report = check(R"("send 1 world f32[8] tag=1")", R"("recv 0 world f32[8] tag=2")");
  EXPECT_EQ(report.verdict, Verdict::kImbalance);
}

TEST_F(MixedLibraries, StandardSendsMayBeBufferedAndOftenAre) {
  const Report report = check(R"("send 1 world f32[8]", "recv 1 world f32[8]")", R"("send 0 world f32[8]", "recv 0 world f32[8]")");
  EXPECT_EQ(report.verdict, Verdict::kConsistent);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].models, std::vector<std::string>{"blocking"});
}

TEST(NcclHostWaits, TheReportNamesTheHostThatWaitsAndWhatHadCompleted) {
  const Report report = diagnose(testing::job_from_json(R"({"library": "nccl", "groups": {"a": [0,1], "b": [0,1]}, "ranks": {
    "0": ["all_reduce a f32[1] stream=s state=completed", "all_reduce a f32[8] stream=s", "device_sync site=step@train.py:9", "all_reduce b f32[8] stream=t"],
    "1": ["all_reduce a f32[1] stream=s state=completed", "all_reduce b f32[8] stream=t", "stream_sync stream=t", "all_reduce a f32[8] stream=s"]}})"));
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.verdict, Verdict::kDeadlock);
  EXPECT_NE(report.findings[0].explanation.find("the host of rank 0 stands in device_sync from step (train.py:9)"), std::string::npos)
      << report.findings[0].explanation;
  EXPECT_NE(report.findings[0].explanation.find("known to have completed is all_reduce #0 on a"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
