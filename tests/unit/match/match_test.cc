// Pairing by position and by message order.
#include "match/match.h"

#include <gtest/gtest.h>

#include "support/job_text.h"

namespace lockstep {
namespace {

using testing::make_job;

TEST(Match, AgreesOnEqualSequences) {
  const Job job = make_job({{"mp", {0, 1}}}, {{"all_reduce mp f32[4]", "barrier mp"}, {"all_reduce mp f32[4]", "barrier mp"}});
  const MatchResult result = match(job);
  EXPECT_TRUE(result.agreed());
  EXPECT_EQ(result.communicators.at(0).positions, 2U);
  EXPECT_EQ(result.communicators.at(0).participants, 2U);
}

TEST(Match, FindsTheFirstPositionThatDiffers) {
  const Job job = make_job({{"mp", {0, 1, 2}}}, {{"barrier mp", "all_reduce mp f32[4]"},
                                                 {"barrier mp", "all_reduce mp f32[4]"},
                                                 {"barrier mp", "all_reduce mp f32[5]", "barrier mp"}});
  const MatchResult result = match(job);
  EXPECT_FALSE(result.communicators.at(0).agreed);
  EXPECT_EQ(result.communicators.at(0).first_difference, 1U);
  EXPECT_EQ(result.communicators.at(0).blocking, std::vector<std::uint32_t>{1});
}

TEST(Match, LetsAnotherReductionThroughTheRendezvous) {
  const Job job = make_job({{"mp", {0, 1}}}, {{"all_reduce mp f32[4] redop=sum"}, {"all_reduce mp f32[4] redop=max"}});
  const MatchResult result = match(job);
  EXPECT_EQ(result.communicators.at(0).first_difference, 0U);
  EXPECT_TRUE(result.communicators.at(0).blocking.empty());
}

struct DifferenceCase {
  std::string name;
  std::string left;
  std::string right;
  std::string library;
  Difference expected;
  friend void PrintTo(const DifferenceCase& c, std::ostream* os) { *os << c.name; }
};

class CompareCollective : public ::testing::TestWithParam<DifferenceCase> {};

TEST_P(CompareCollective, NamesTheFirstArgumentThatDiffers) {
  const Job job = make_job({{"g", {0, 1}}}, {{GetParam().left}, {GetParam().right}}, {}, GetParam().library);
  const Operation& left = job.programs()[0].operations.at(0);
  const Operation& right = job.programs()[1].operations.at(0);
  EXPECT_EQ(compare_collective(job, left, right), GetParam().expected);
  EXPECT_EQ(signature(job, left) == signature(job, right), GetParam().expected == Difference::kNone);
}

INSTANTIATE_TEST_SUITE_P(Table, CompareCollective, ::testing::ValuesIn<DifferenceCase>({
    {"SameCall", "all_reduce g f32[4] redop=sum", "all_reduce g f32[4] redop=sum", "", Difference::kNone},
    {"OtherKind", "all_reduce g f32[4]", "all_gather g f32[4]", "", Difference::kKind},
    {"OtherCount", "all_reduce g f32[4]", "all_reduce g f32[5]", "", Difference::kCount},
    {"OtherSymbol", "all_reduce g f32[n]", "all_reduce g f32[m]", "", Difference::kCount},
    {"OtherDatatype", "all_reduce g f32[4]", "all_reduce g f16[4]", "", Difference::kDatatype},
    {"OtherReduction", "all_reduce g f32[4] redop=sum", "all_reduce g f32[4] redop=max", "", Difference::kReduction},
    {"OtherRoot", "broadcast g f32[4] root=0", "broadcast g f32[4] root=1", "", Difference::kRoot},
    {"OtherMembers", "new_group g members=0", "new_group g members=1", "", Difference::kCreation},
    {"SplitColoursAreFree", "split g color=0", "split g color=1", "", Difference::kNone},
    {"SitesAreFree", "barrier g site=a.py:1", "barrier g site=b.py:2", "", Difference::kNone},
    {"CountsOfVCollectivesAreFree", "all_to_all_v g f32[4]", "all_to_all_v g f32[9]", "", Difference::kNone},
    {"NonblockingIsAnotherKindInMpi", "all_reduce g f32[4] handle=h", "all_reduce g f32[4]", "mpi", Difference::kKind},
    {"NonblockingIsTheSameKindElsewhere", "all_reduce g f32[4] handle=h", "all_reduce g f32[4]", "torch", Difference::kNone},
}), [](const auto& test) { return test.param.name; });

TEST(Match, PairsMessagesInTheOrderOfTheCalls) {
  const Job job = make_job({{"pp", {0, 1}}}, {{"send 1 f32[4]", "send 1 f32[8]"}, {"recv 0 f32[4]", "recv 0 f32[9]"}});
  const MatchResult result = match(job);
  ASSERT_EQ(result.channels.size(), 1U);
  EXPECT_EQ(result.channels[0].first_difference, 1U);
  EXPECT_EQ(result.message_gates[0], result.message_gates[1]);
}

TEST(Match, LetsAnMpiReceiveBeLonger) {
  const Job longer = make_job({{"pp", {0, 1}}}, {{"send 1 f32[4]"}, {"recv 0 f32[9]"}}, {}, "mpi");
  EXPECT_TRUE(match(longer).agreed());
  const Job shorter = make_job({{"pp", {0, 1}}}, {{"send 1 f32[9]"}, {"recv 0 f32[4]"}}, {}, "mpi");
  EXPECT_FALSE(match(shorter).agreed());
}

TEST(Match, SeparatesMessagesByTagButNotForNccl) {
  const std::vector<std::vector<std::string>> lines{{"send 1 f32[4] tag=1", "send 1 f32[4] tag=2"},
                                                    {"recv 0 f32[4] tag=2", "recv 0 f32[4] tag=1"}};
  EXPECT_EQ(match(make_job({{"pp", {0, 1}}}, lines, {}, "mpi")).channels.size(), 2U);
  EXPECT_EQ(match(make_job({{"pp", {0, 1}}}, lines, {}, "nccl")).channels.size(), 1U);
}

TEST(Match, ComparesPayloadsByKindAndIdentity) {
  const auto agrees = [](std::string_view sent, std::string_view wanted) {
    const Job job = make_job({{"pp", {0, 1}}}, {{"send 1 " + std::string(sent)}, {"recv 0 " + std::string(wanted)}});
    return match(job).agreed();
  };
  EXPECT_TRUE(agrees("act:0.1", "act:0.1"));
  EXPECT_TRUE(agrees("act:0.1", "act"));
  EXPECT_FALSE(agrees("act:0.1", "act:0.2"));
  EXPECT_FALSE(agrees("grad:0.1", "act"));
}

TEST(OwnerOf, FindsCommunicatorsAndChannelsAmongEmptyOnes) {
  const Job job = make_job({{"unused", {0, 1}}, {"mp", {0, 1}}, {"pp", {0, 1}}},
                           {{"barrier mp", "barrier mp", "send 1 pp f32[1]"}, {"barrier mp", "barrier mp", "recv 0 pp f32[1]"}});
  const MatchResult result = match(job);
  EXPECT_EQ(owner_of(result, GateIndex{1}).comm, CommIndex{1});
  EXPECT_EQ(owner_of(result, GateIndex{1}).seq, 1U);
  EXPECT_EQ(owner_of(result, GateIndex{2}).comm, kNoComm);
  EXPECT_EQ(owner_of(result, GateIndex{2}).channel, 0U);
}

}  // namespace
}  // namespace lockstep
