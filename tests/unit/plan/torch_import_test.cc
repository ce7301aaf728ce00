// Schedule CSVs of torch pipelining: what is wrong with them, and what replay makes of the rest.
#include "plan/schedule/torch_import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/schedule/torch_lower.h"
#include "plan/schedule/torch_orders.h"
#include "support/random.h"

namespace lockstep::plan {
namespace {

/// "1.3 message" of every problem: row and cell from 1.
std::vector<std::string> problems(std::string_view csv) {
  const auto import = import_torch_csv(csv, "x.csv", TorchLetters::kNew);
  EXPECT_TRUE(import) << import.error().message;
  std::vector<std::string> texts;
  if (!import) return texts;
  for (const TorchProblem& problem : import->problems) {
    texts.push_back(std::to_string(problem.rank + 1) +
                    (problem.cell ? "." + std::to_string(*problem.cell + 1) : "") + " " + problem.message);
  }
  return texts;
}
using Texts = std::vector<std::string>;

TEST(TorchImport, IsContentWithWhatTorchMakes) {
  for (const auto schedule :
       {TorchSchedule::kLoopedBfs, TorchSchedule::kInterleaved1F1B, TorchSchedule::kInterleavedZeroBubble,
        TorchSchedule::kZbv, TorchSchedule::kDualPipeV}) {
    const TorchQuery query{.schedule = schedule, .ranks = 3, .stages_per_rank = 2, .micro_batches = 6};
    const TorchOrder order = torch_order(query);
    const auto lowered = lower_torch_order(order, query.stages(), query.micro_batches);
    ASSERT_TRUE(lowered);
    for (const TorchOrder& rows : {order, lowered->compute_comms, lowered->compute_sendrecv}) {
      std::string csv;
      for (const TorchRow& row : rows) csv += torch_row_text(row) + "\n";
      EXPECT_EQ(problems(csv), Texts{}) << torch_schedule_name(schedule);
      EXPECT_TRUE(import_torch_csv(csv, "x.csv", TorchLetters::kNew)->timeline);
    }
  }
}

TEST(TorchImport, FindsTheDisplayedOrderOf1F1BWrong) {
  std::string csv;
  for (const TorchRow& row : torch_order(
           {.schedule = TorchSchedule::k1F1B, .ranks = 2, .stages_per_rank = 1, .micro_batches = 2})) {
    csv += torch_row_text(row) + "\n";
  }
  EXPECT_EQ(problems(csv), (Texts{"2 stage 1 has no forward of 1 of 2 micro-batches, first 0",
                                  "2.2 1B0: comes before the forward of the stage",
                                  "2.3 1F2: most stages have 2 micro-batches, from 0"}));
}

TEST(TorchImport, FindsWhatTorchDoesNotCheck) {
  EXPECT_EQ(problems("0F0,0F0,0B0"), Texts{"1.2 0F0: stands twice, first in row 1, cell 1"});
  EXPECT_EQ(problems("0UNSHARD,0F0,0RESHARD,0B0"), Texts{"1.4 0B0: runs while the stage is sharded"});
  EXPECT_EQ(problems("0UNSHARD,0F0,0B0"), Texts{"1 stage 0 stays unsharded after the last action"});
  EXPECT_EQ(
      problems("0UNSHARD,0UNSHARD,0F0,0B0,0RESHARD,0RESHARD"),
      (Texts{"1.2 0UNSHARD: the stage is unsharded already", "1.6 0RESHARD: the stage is not unsharded"}));
  EXPECT_EQ(problems("0F0,0F1,0B0,0REDUCE_GRAD,0B1"),
            Texts{"1.5 0B1: comes after the stage's REDUCE_GRAD: its gradient is not reduced"});
  EXPECT_EQ(problems("0F0,0B0,(0F1;0B1)OVERLAP_F_B"),
            Texts{"1.3 (0F1;0B1)OVERLAP_F_B: both are of one stage"});
}

TEST(TorchImport, FindsMessagesThatAreMissingOrMisplaced) {
  EXPECT_EQ(problems("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0"), Texts{});
  EXPECT_EQ(problems("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0"),
            Texts{"1.1 0F0: its result is not sent to stage 1"});
  EXPECT_EQ(problems("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0"),
            Texts{"2.1 1F0: what it needs of stage 0 is not received"});
  EXPECT_EQ(problems("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0"),
            Texts{"2.1 1F0: comes before its receive, cell 2"});
  EXPECT_EQ(problems("0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0"),
            Texts{"1.1 0SEND_F0: comes before what it sends is computed"});
  EXPECT_EQ(problems("0F0,1F0,0SEND_F0,1B0,0B0"),
            Texts{"1.3 0SEND_F0: stage 1 is on the same rank: nothing is sent"});
  EXPECT_EQ(problems("0F0,0SEND_F0,0B0"), Texts{"1.2 0SEND_F0: there is no stage on that side"});
}

TEST(TorchImport, FindsStagesThatAreMissingOrOnTwoRanks) {
  EXPECT_EQ(problems("0F0,0B0\n0F1,0B1").size(), 2U);
  EXPECT_EQ(problems("1F0,1B0"), Texts{"1 no row has stage 0"});
}

/// Any text ends in an error or a list, in bounded time.
TEST(TorchImport, SurvivesRandomCells) {
  lockstep::testing::Random random(3);
  const std::vector<std::string> words = {
      "F",      "B",      "I",      "W", "UNSHARD", "RESHARD", "REDUCE_GRAD", "SEND_F",
      "RECV_F", "SEND_B", "RECV_B", "(", ";",       ")",       "OVERLAP_F_B", ",",
      "\n",     " ",      "0",      "1", "2",       "65535",   "65536",       "-"};
  for (int i = 0; i < 3000; ++i) {
    std::string csv;
    for (int n = random.below(40); n > 0; --n) csv += random.pick(words);
    static_cast<void>(
        import_torch_csv(csv, "x.csv", random.chance(50) ? TorchLetters::kNew : TorchLetters::kOld));
  }
  for (int i = 0; i < 2000; ++i) {  // cells that can be read
    std::string csv;
    for (int n = random.below(30); n > 0; --n) {
      csv += std::to_string(random.below(3)) + words[random.below(std::size_t{11})];
      const bool alone = csv.ends_with("SHARD") || csv.ends_with("GRAD");
      if (!alone) csv += std::to_string(random.below(3));
      csv += random.chance(15) ? "\n" : ",";
    }
    const auto import = import_torch_csv(csv, "x.csv", TorchLetters::kNew);
    const std::size_t ranks = import && import->timeline ? import->timeline->ranks.size() : 0;
    EXPECT_LE(ranks, 30U);
  }
}

TEST(TorchWaits, AreNamedAsTorch215NamesThem) {
  const TorchQuery query{.schedule = TorchSchedule::kZbv, .ranks = 2, .stages_per_rank = 2, .micro_batches = 2};
  const auto lowered = lower_torch_order(torch_order(query), query.stages(), query.micro_batches, TorchWaits::kNamed);
  ASSERT_TRUE(lowered) << lowered.error().message;
  // As torch 2.15.0 prints its pipeline_order_with_comms.
  EXPECT_EQ(torch_row_text(lowered->compute_comms[0]),
            "0UNSHARD,3UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,3F0,3I0,3SEND_B0,3RECV_F1,3W0,3F1,3I1,3SEND_B1,0RECV_B0,3W1,3REDUCE_GRAD,"
            "3WAIT_REDUCE_GRAD,3RESHARD,0I0,0WAIT_SEND_F0,0W0,0RECV_B1,0I1,0WAIT_SEND_F1,0W1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD,"
            "3WAIT_SEND_B0,3WAIT_SEND_B1");
  EXPECT_EQ(torch_row_text(lowered->compute_comms[1]),
            "1UNSHARD,2UNSHARD,1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1F1,2RECV_B0,2F1,2SEND_F1,2I0,2WAIT_SEND_F0,2W0,2RECV_B1,1I0,1SEND_B0,1W0,"
            "2I1,2WAIT_SEND_F1,2W1,2REDUCE_GRAD,2WAIT_REDUCE_GRAD,2RESHARD,1I1,1SEND_B1,1W1,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1RESHARD,"
            "1WAIT_SEND_B0,1WAIT_SEND_B1");
}

TEST(TorchWaits, InACsvAreNoMessagesAndEachSendIsWaitedForOnce) {
  const TorchQuery query{.schedule = TorchSchedule::kInterleaved1F1B, .ranks = 4, .stages_per_rank = 2, .micro_batches = 8};
  const auto lowered = lower_torch_order(torch_order(query), query.stages(), query.micro_batches, TorchWaits::kNamed);
  ASSERT_TRUE(lowered) << lowered.error().message;
  std::string csv;
  for (const TorchRow& row : lowered->compute_comms) csv += torch_row_text(row) + "\n";
  EXPECT_EQ(problems(csv), Texts{});
  const Timeline timeline = torch_timeline(lowered->compute_comms, lowered->stage_ranks);
  for (const RankTimeline& rank : timeline.ranks) {
    const auto issued = std::ranges::count(rank.steps, StepKind::kBatch, &Step::kind);
    EXPECT_EQ(std::ranges::count(rank.steps, StepKind::kWait, &Step::kind), issued);
  }
}

}  // namespace
}  // namespace lockstep::plan
