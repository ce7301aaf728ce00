// What holds for every schedule, whatever its parameters; and what the expansion refuses.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "diagnose/diagnose.h"
#include "plan/schedule/deepspeed.h"
#include "plan/schedule/dualpipe.h"
#include "plan/schedule/lower_to_job.h"
#include "plan/schedule/megatron.h"
#include "plan/schedule/python_set.h"
#include "plan/schedule/python_sort.h"
#include "plan/schedule/schedule_query.h"
#include "plan/schedule/torch_first_step.h"
#include "plan/schedule/torch_lower.h"
#include "plan/schedule/torch_orders.h"
#include "plan/schedule/torch_runtime.h"
#include "plan/schedule/zero_bubble.h"
#include "support/random.h"

namespace lockstep::plan {
namespace {

using Json = nlohmann::json;

Job job_of(const Timeline& timeline, ScheduleSource source = ScheduleSource::kMegatron) {
  JobBuilder builder;
  builder.set_library(Library::kTorch);
  std::vector<std::int32_t> ranks(timeline.ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const CommIndex pipeline = builder.communicator("pp", "pp", ranks);
  const PipelinePlace place{
      .ranks = ranks, .pipeline = pipeline, .world = builder.communicator("world", "world", ranks)};
  ScheduleLowering lowering(builder, timeline, {.source = source});
  for (const std::int32_t rank : ranks) {
    OperationTable operations;
    lowering.append(rank, place, operations);
    Program& program = builder.program(rank);
    program.operations = std::move(operations);
    program.end = {.kind = EndKind::kExited, .status = 0};
  }
  return std::move(builder).build();
}

void expect_each_gets_what_it_expects(const Timeline& timeline) {
  const auto received = received_payloads(timeline);
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
    const auto& messages = timeline.ranks[r].messages;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      ASSERT_EQ(payload_text(messages[i].payload), payload_text(received[r][i]))
          << "rank " << r << ", message " << i;
    }
  }
}

void expect_clean(const Timeline& timeline) {
  const Report report = diagnose(job_of(timeline));
  EXPECT_EQ(verdict_name(report.verdict), "consistent");
  for (const Finding& finding : report.findings)
    EXPECT_NE(severity_name(finding.severity), "certain") << finding.title;
}

TEST(Schedules, OfMegatronPairUpForRandomParameters) {
  lockstep::testing::Random random(20261201);
  for (int i = 0; i < 200; ++i) {
    MegatronQuery query{
        .schedule = random.below(3) == 0 ? MegatronSchedule::k1F1B : MegatronSchedule::kInterleaved,
        .stages = static_cast<std::int32_t>(random.below(7)) + 2,
        .micro_batches = static_cast<std::int32_t>(random.below(30)) + 1,
        .forward_only = random.below(4) == 0};
    if (query.schedule == MegatronSchedule::kInterleaved)
      query.chunks = static_cast<std::int32_t>(random.below(3)) + 2;
    query.options.batch_p2p_comm = random.below(2) == 0;
    query.options.overlap_p2p_comm = random.below(2) == 0;
    query.options.overlap_p2p_comm_warmup_flush = query.options.overlap_p2p_comm && random.below(2) == 0;
    query.options.variable_seq_lengths = random.below(4) == 0;
    if (random.below(2) == 0)
      query.options.group_sizes = {query.stages + static_cast<std::int32_t>(random.below(4))};
    if (megatron_rejection(query)) continue;
    // Two ranks that are each other's neighbours on both sides, in one batch: Megatron's known mix-up.
    if (query.stages == 2 && query.schedule == MegatronSchedule::kInterleaved && query.options.batch_p2p_comm)
      continue;
    SCOPED_TRACE(::testing::Message()
                 << "stages " << query.stages << " chunks " << query.chunks << " micro-batches "
                 << query.micro_batches << " batch " << query.options.batch_p2p_comm << " overlap "
                 << query.options.overlap_p2p_comm);
    expect_each_gets_what_it_expects(megatron_timeline(query));
  }
}

TEST(Schedules, OfOthersPairUpForRandomParameters) {
  lockstep::testing::Random random(7);
  for (int i = 0; i < 60; ++i) {
    const auto p = static_cast<std::int32_t>(random.below(8)) + 1;
    const auto m = static_cast<std::int32_t>(random.below(20)) + 1;
    SCOPED_TRACE(::testing::Message() << "stages " << p << " micro-batches " << m);
    for (const auto version : {DeepSpeedVersion::kOld, DeepSpeedVersion::kNew}) {
      expect_each_gets_what_it_expects(deepspeed_timeline(deepspeed_train(p, m, version), true));
    }
    expect_each_gets_what_it_expects(deepspeed_timeline(deepspeed_inference(p, m), true));
    for (const auto schedule : {TorchRuntimeSchedule::kGPipe, TorchRuntimeSchedule::k1F1B}) {
      expect_each_gets_what_it_expects(torch_runtime_timeline(schedule, p, m, false));
    }
    for (const auto kind : {DualPipeKind::kBothWays, DualPipeKind::kVee}) {
      if (!dualpipe_rejection(kind, p, 4 * m))
        expect_each_gets_what_it_expects(dualpipe_timeline(kind, p, 4 * m));
    }
    for (const auto schedule :
         {TorchSchedule::kGPipe, TorchSchedule::kLoopedBfs, TorchSchedule::kInterleaved1F1B,
          TorchSchedule::kInterleavedZeroBubble, TorchSchedule::kZbv, TorchSchedule::kDualPipeV}) {
      const TorchQuery query{.schedule = schedule,
                             .ranks = p,
                             .stages_per_rank = schedule == TorchSchedule::kGPipe ? 1 : 2,
                             .micro_batches = m};
      if (torch_rejection(query)) continue;
      const auto lowered = lower_torch_order(torch_order(query), query.stages(), m);
      ASSERT_TRUE(lowered) << torch_schedule_name(schedule) << ": " << lowered.error().message;
      Timeline timeline = torch_timeline(lowered->compute_comms, lowered->stage_ranks);
      prepend_torch_handshake(timeline, lowered->stage_ranks);
      expect_each_gets_what_it_expects(timeline);
    }
    using enum ZeroBubbleSchedule;
    for (const auto schedule : {k1F1B, kZb, kVpp, kZbv, kZbvGreedyMin, kZbvGreedyHalf, kV1F1B}) {
      const ZeroBubbleQuery query{.schedule = schedule,
                                  .stages = p,
                                  .micro_batches = m,
                                  .chunks = schedule == kVpp ? 2 : chunks_of(schedule)};
      const auto order = zero_bubble_order(query);
      if (!order) continue;
      const auto messages = zero_bubble_with_messages(query, *order);
      if (messages) expect_each_gets_what_it_expects(zero_bubble_timeline(*messages));
    }
  }
}

TEST(Schedules, AreCleanWhenReplayed) {
  expect_clean(megatron_timeline({.stages = 4, .micro_batches = 6}));
  expect_clean(megatron_timeline(
      {.schedule = MegatronSchedule::kInterleaved, .stages = 4, .chunks = 2, .micro_batches = 8}));
  expect_clean(deepspeed_timeline(deepspeed_train(4, 6, DeepSpeedVersion::kNew), true));
  expect_clean(deepspeed_timeline(deepspeed_train(4, 6, DeepSpeedVersion::kOld), true));
  expect_clean(deepspeed_timeline(deepspeed_inference(4, 6), true));
  expect_clean(torch_runtime_timeline(TorchRuntimeSchedule::k1F1B, 4, 6, false));
  expect_clean(dualpipe_timeline(DualPipeKind::kBothWays, 4, 10));
}

TEST(Schedules, AMixUpOfPayloadsIsAFindingWithoutAHang) {
  const Report report = diagnose(job_of(megatron_timeline(
      {.schedule = MegatronSchedule::kInterleaved, .stages = 2, .chunks = 2, .micro_batches = 4})));
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(verdict_name(report.verdict), "mismatch");
  EXPECT_EQ(report.findings[0].finding_class, "payload_differs");
  EXPECT_TRUE(report.findings[0].wait_for.empty());
}

TEST(Schedules, AStageThatKnowsItsInputLeavesTheOneBeforeAlone) {
  const std::vector<std::int32_t> stage_ranks = {0, 1};
  for (const bool knows : {false, true}) {
    Timeline timeline = torch_runtime_timeline(TorchRuntimeSchedule::kGPipe, 2, 1, false);
    prepend_torch_handshake(timeline, stage_ranks, {false, knows});
    const Report report = diagnose(job_of(timeline, ScheduleSource::kTorch));
    EXPECT_EQ(verdict_name(report.verdict) == "consistent", !knows) << verdict_name(report.verdict);
  }
}

TEST(Schedules, StagesAgreeOnShapesSinceTorch212) {
  for (const auto& stage_ranks : {std::vector<std::int32_t>{0, 1, 2}, {0, 1, 2, 2, 1, 0}, {0, 1, 2, 0, 1, 2}}) {
    const auto stages = static_cast<std::int32_t>(stage_ranks.size());
    for (const std::string_view version : {"2.12.0", "2.14.1", "2.15.0"}) {
      for (std::size_t knowing = 0; knowing <= stage_ranks.size(); ++knowing) {
        Timeline timeline;
        timeline.placement = Placement::kExplicit;
        timeline.ranks.resize(3);
        std::vector<bool> knows(stage_ranks.size());
        std::fill_n(knows.begin(), knowing, true);
        prepend_torch_agreement(timeline, stage_ranks, knows, version);
        expect_clean(timeline);
        const auto shapes = std::ranges::count(timeline.ranks[1].messages, Carries::kShape,
                                               [](const Message& message) { return message.payload.carries; });
        EXPECT_EQ(shapes > 0, knowing < static_cast<std::size_t>(stages));
        EXPECT_EQ(timeline.ranks[1].messages.size() > static_cast<std::size_t>(shapes), version != "2.15.0");
      }
    }
  }
}

TEST(Schedules, MessagesOfOneDirectionAreNoBatchSinceTorch212) {
  Timeline timeline = torch_runtime_timeline(TorchRuntimeSchedule::k1F1B, 4, 6, false);
  unbatch_one_way(timeline);
  std::size_t alone = 0;
  for (const RankTimeline& rank : timeline.ranks)
    for (const Step& step : rank.steps) {
      EXPECT_EQ(step.kind == StepKind::kBatch, step.messages == 2) << "only what goes both ways";
      alone += step.kind == StepKind::kAsync ? 1 : 0;
    }
  EXPECT_GT(alone, 0u);
  expect_each_gets_what_it_expects(timeline);
  expect_clean(timeline);
}

TEST(Schedules, OfDeepSpeedSendShapesOnceAStage) {
  const Timeline first = deepspeed_timeline(deepspeed_train(3, 4, DeepSpeedVersion::kNew), true);
  const Timeline later = deepspeed_timeline(deepspeed_train(3, 4, DeepSpeedVersion::kNew), false);
  const auto count = [](const RankTimeline& rank) { return rank.messages.size(); };
  EXPECT_EQ(count(first.ranks[0]), count(later.ranks[0]) + 1);
  EXPECT_EQ(count(first.ranks[1]), count(later.ranks[1]) + 2);
  EXPECT_EQ(count(first.ranks[2]), count(later.ranks[2]) + 1);
}

TEST(Schedules, MessagesNameInstructionAndFunction) {
  const Timeline timeline = deepspeed_timeline(deepspeed_train(2, 1, DeepSpeedVersion::kNew), false);
  const Job job = job_of(timeline, ScheduleSource::kDeepSpeed);
  const Operation& send = job.programs()[0].operations[0];
  EXPECT_EQ(job.extra(send).label, "SendActivation PipelineEngine._exec_send_activations");
  EXPECT_EQ(job.text(send.payload), "act:0.0");
}

TEST(Schedules, MarksGoToTheCaller) {
  JobBuilder builder;
  const std::vector<std::int32_t> ranks = {4, 5};
  const CommIndex pipeline = builder.communicator("pp", "pp", ranks);
  const Timeline timeline = deepspeed_timeline(deepspeed_train(2, 1, DeepSpeedVersion::kNew), false);
  std::vector<Mark> marks;
  OperationTable operations;
  ScheduleLowering(builder, timeline, {.source = ScheduleSource::kDeepSpeed})
      .append(0, {.ranks = ranks, .pipeline = pipeline}, operations,
              [&](const Step& step, OperationTable&) {
                if (step.kind == StepKind::kMark) marks.push_back(step.mark);
              });
  EXPECT_EQ(marks, (std::vector{Mark::kReduceTiedGrads, Mark::kReduceGrads, Mark::kOptimizerStep}));
  EXPECT_EQ(operations[0].peer, 5);
}

TEST(ScheduleQueries, RefuseWhatIsTooLargeAtOnce) {
  for (const auto framework :
       {ScheduleFramework::kDeepSpeed, ScheduleFramework::kMegatron, ScheduleFramework::kTorch,
        ScheduleFramework::kTorchRuntime, ScheduleFramework::kZeroBubble, ScheduleFramework::kDualPipe}) {
    ScheduleQuery query{.framework = framework, .stages = 4, .micro_batches = 1'000'000'000};
    query.name = framework == ScheduleFramework::kDeepSpeed  ? "train"
                 : framework == ScheduleFramework::kTorch    ? "GPipe"
                 : framework == ScheduleFramework::kDualPipe ? "DualPipe"
                                                             : "1F1B";
    const auto json = schedule_json(query);
    ASSERT_FALSE(json);
    EXPECT_EQ(json.error().code, ErrorCode::kUnsupported);
    EXPECT_TRUE(json.error().message.starts_with("--micro-batches: 1000000000")) << json.error().message;
    query.micro_batches = 0;
    EXPECT_FALSE(schedule_json(query));
    query.micro_batches = 1 << 20;  // too many with the stages
    EXPECT_FALSE(schedule_json(query));
    query.micro_batches = std::numeric_limits<std::int64_t>::min();
    EXPECT_FALSE(schedule_json(query));
  }
}

TEST(ScheduleQueries, GiveTheFrameworksOwnRefusal) {
  const auto error_of = [](const ScheduleQuery& query) {
    const auto json = schedule_json(query);
    return json ? Json::parse(*json).value("error", "") : json.error().message;
  };
  EXPECT_EQ(error_of({.framework = ScheduleFramework::kMegatron,
                      .name = "interleaved",
                      .stages = 4,
                      .virtual_stages = 2,
                      .micro_batches = 2}),
            "ValueError: The number of contiguous micro-batches in a virtual pipeline stageshould range in "
            "[PP=4 , M=2]");
  EXPECT_EQ(error_of({.framework = ScheduleFramework::kTorch,
                      .name = "Interleaved1F1B",
                      .stages = 4,
                      .virtual_stages = 2,
                      .micro_batches = 9}),
            "ValueError: Interleaved 1F1B requires the number of microbatches to be a multiple of the number "
            "of rounds (2), but got 9.");
  EXPECT_EQ(error_of({.framework = ScheduleFramework::kTorch,
                      .name = "DualPipeV",
                      .stages = 4,
                      .virtual_stages = 2,
                      .micro_batches = 7}),
            "ValueError: DualPipeV requires at least as many microbatches as stages, but got 7 microbatches "
            "and 8 stages.");
  EXPECT_EQ(
      error_of(
          {.framework = ScheduleFramework::kDualPipe, .name = "DualPipe", .stages = 4, .micro_batches = 9}),
      "AssertionError: num_chunks=9, num_ranks=4");
  EXPECT_EQ(error_of({.framework = ScheduleFramework::kDualPipe, .name = "DualPipe", .stages = 3, .micro_batches = 8}),
            "AssertionError: ");
  // Fewer micro-batches than stages, by release of torch.
  for (const ScheduleFramework framework : {ScheduleFramework::kTorch, ScheduleFramework::kTorchRuntime}) {
    const auto refused = [&](std::string name, std::string version) {
      return error_of({.framework = framework,
                       .name = std::move(name),
                       .stages = 4,
                       .micro_batches = 3,
                       .torch_version = std::move(version)}) ==
             "ValueError: Number of microbatches (3) must be greater than or equal to the number of stages (4).";
    };
    EXPECT_TRUE(refused("1F1B", "2.14"));
    EXPECT_TRUE(refused("1F1B", "2.7.0"));
    EXPECT_FALSE(refused("1F1B", "2.6.0"));
    EXPECT_TRUE(refused("GPipe", "2.10.0"));
    EXPECT_FALSE(refused("GPipe", "2.11.0"));
    EXPECT_FALSE(refused("GPipe", "2.6.0"));
  }
}

TEST(ScheduleQueries, TorchNamesTheWaitForAReductionSince215) {
  const auto row = [](std::string version) {
    const auto json = schedule_json({.framework = ScheduleFramework::kTorch,
                                     .name = "GPipe",
                                     .stages = 1,
                                     .micro_batches = 1,
                                     .torch_version = std::move(version)});
    return Json::parse(*json)["compute_only"]["0"].get<std::string>();
  };
  EXPECT_EQ(row("2.14.1"), "0F0,0B0,0REDUCE_GRAD");
  EXPECT_EQ(row("2.15.0"), "0F0,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD");
}

TEST(ScheduleQueries, NameTheFlagThatIsWrong) {
  const auto message = [](ScheduleQuery query) {
    const auto json = schedule_json(query);
    return json ? std::string("accepted") : json.error().message.substr(0, json.error().message.find(':'));
  };
  EXPECT_EQ(message({.framework = ScheduleFramework::kMegatron, .name = "2F2B"}), "--name");
  EXPECT_EQ(message({.framework = ScheduleFramework::kMegatron,
                     .name = "interleaved",
                     .stages = 2,
                     .micro_batches = 2}),
            "--virtual");
  EXPECT_EQ(message({.framework = ScheduleFramework::kMegatron, .name = "no_pipelining", .stages = 2}),
            "--stages");
  ScheduleQuery group{.framework = ScheduleFramework::kMegatron,
                      .name = "interleaved",
                      .stages = 2,
                      .virtual_stages = 2,
                      .micro_batches = 4};
  for (const char* text : {"x", "rank0:", "rank9:2, others:2", "rank0:2", "-1", "rank0:2,,", "others", ":",
                           "99999999999999999999"}) {
    group.group = text;
    EXPECT_EQ(message(group), "--group") << text;
  }
}

TEST(TorchCsv, ReadsWhatItPrints) {
  const TorchQuery query{
      .schedule = TorchSchedule::kDualPipeV, .ranks = 3, .stages_per_rank = 2, .micro_batches = 7};
  const TorchOrder order = torch_order(query);
  std::string csv;
  for (const TorchRow& row : order) csv += torch_row_text(row) + "\r\n";
  const auto parsed = parse_torch_csv(csv, "x.csv", TorchLetters::kNew);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(*parsed, order);
}

TEST(TorchCsv, KnowsTheLettersOfTheFirstReleases) {
  const auto parsed = parse_torch_csv("0F0,0B0,0W0,0BW1\n", "x.csv", TorchLetters::kOld);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(torch_row_text((*parsed)[0]), "0F0,0I0,0W0,0B1");
}

TEST(TorchCsv, NamesTheCellThatIsNoAction) {
  for (const char* cell : {"F0", "0F", "0X1", "0F-1", "0F1x", "0UNSHARD3", "(0F1", "(0F1;1B0)",
                           "(0F1)OVERLAP_F_B", "99999999999F0", "0F99999999999", "()", ";"}) {
    const auto parsed =
        parse_torch_csv(std::string("0F0,1F0\n0F1,") + cell + "\n", "x.csv", TorchLetters::kNew);
    ASSERT_FALSE(parsed) << cell;
    EXPECT_TRUE(parsed.error().message.starts_with("x.csv:2: cell 2: ")) << parsed.error().message;
  }
  EXPECT_FALSE(parse_torch_csv("", "x.csv", TorchLetters::kNew));
  EXPECT_FALSE(parse_torch_csv("\n \r\n", "x.csv", TorchLetters::kNew));
}

TEST(TorchCsv, IsNotLoweredPastItsMicroBatches) {
  const auto parsed = parse_torch_csv("0F9,0B9\n", "x.csv", TorchLetters::kNew);
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(lower_torch_order(*parsed, 1, 1));
}

/// The configuration object is made before any schedule runs, and so is what it refuses.
TEST(MegatronRejection, IsTheConfigurationsFirst) {
  for (const MegatronSchedule schedule :
       {MegatronSchedule::kNoPipelining, MegatronSchedule::k1F1B, MegatronSchedule::kInterleaved}) {
    MegatronQuery query{.schedule = schedule, .stages = 2, .chunks = 2, .micro_batches = 4};
    query.options.overlap_p2p_comm = query.options.batch_p2p_comm = true;
    query.options.overlap_p2p_comm_warmup_flush = true;
    EXPECT_EQ(megatron_rejection(query),
              "ValueError: Pipeline parallel communication overlapping in warmup and flush is only "
              "compatible with overlap_p2p_comm but not batch_p2p_comm.");
  }
}

/// Lists that CPython 3.11 gave for the same operations.
TEST(PythonIntSet, IteratesAsPythonDoes) {
  PythonIntSet set;
  for (const std::int32_t key : {0, 4, 8}) set.insert(key);
  EXPECT_EQ(set.in_order(), (std::vector<std::int32_t>{0, 8, 4}));
  PythonIntSet reused;
  reused.insert(1);
  reused.insert(9);
  reused.erase(1);
  reused.insert(17);
  EXPECT_EQ(reused.in_order(), (std::vector<std::int32_t>{17, 9}));
  EXPECT_FALSE(reused.contains(1));
}

/// Sums of place times id that CPython 3.11 gave for the same lists and the same comparison, which is cyclic.
TEST(PythonSort, SortsByContradictingComparisonsAsPythonDoes) {
  struct Row {
    std::int32_t rank = 0, place = 0, time = 0, id = 0;
  };
  const auto sorted = [](std::int32_t size) {
    std::vector<Row> rows;
    for (std::int32_t i = 0; i < size; ++i)
      rows.push_back({i * 7 % 5, i * 37 % 101, i % 3 != 0 ? i * 53 % 17 : i / 9, i});
    python_sort(rows, [](const Row& a, const Row& b) {
      return a.rank == b.rank ? a.place < b.place : a.time < b.time;
    });
    return rows;
  };
  std::vector<std::int32_t> ids;
  for (const Row& row : sorted(12)) ids.push_back(row.id);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{0, 3, 6, 9, 1, 10, 2, 11, 4, 5, 7, 8}));
  for (const auto& [size, expected] : {std::pair{20, 2159}, {64, 65823}, {300, 792064}, {1000, 110418}}) {
    std::int64_t sum = 0, place = 0;
    for (const Row& row : sorted(size)) sum += ++place * row.id;
    EXPECT_EQ(sum % 1000003, expected) << size;
  }
}

/// Sends of one time on several ranks have no order of their own; these are the scheduler's.
TEST(ZeroBubble, OrdersMessagesOfOneTimeAsItsPythonDoes) {
  const auto with_messages = [](std::int32_t stages, std::int32_t micro_batches) {
    const ZeroBubbleQuery query{.schedule = ZeroBubbleSchedule::kZb,
                                .stages = stages,
                                .micro_batches = micro_batches,
                                .post_validation = true};
    return zero_bubble_with_messages(query, *zero_bubble_order(query));
  };
  const auto accepted = with_messages(7, 1);
  ASSERT_TRUE(accepted);
  EXPECT_EQ(zb_row_text((*accepted)[5]),
            "RECV_FORWARD0.0<4#9!rb RECV_POST_VALIDATION0.0<6#-6 F0.0 SEND_FORWARD0.0>6#11 "
            "SEND_POST_VALIDATION0.0>4#-5 POST_VALIDATION0.0 RECV_BACKWARD0.0<6#10 B0.0 SEND_BACKWARD0.0>4#8 W0.0");
  const auto refused = with_messages(6, 3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "AssertionError: Cannot find recv consumer node after recv: stage 2 recv rpv0 consumer spv0 nodes: rf0 rf1 f0 sf0 rf2 "
            "f1 sf1 f2 sf2 spv0 rpv0 pv0 b0 sb0 w0 b1 sb1 w1 b2 sb2 w2");
}

}  // namespace
}  // namespace lockstep::plan
