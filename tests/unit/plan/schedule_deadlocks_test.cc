// Which schedules can finish, under which blocking rules: every trace and every mutant that a reference
// simulator was run on.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <sstream>

#include "match/match.h"
#include "plan/schedule/dualpipe.h"
#include "plan/schedule/lower_to_job.h"
#include "plan/schedule/megatron.h"
#include "plan/schedule/torch_lower.h"
#include "plan/schedule/torch_orders.h"
#include "plan/schedule/torch_runtime.h"
#include "plan/schedule/zero_bubble.h"
#include "replay/replay.h"
#include "unit/read/read_testing.h"

namespace lockstep::plan {
namespace {

using Json = nlohmann::json;

/// The parts of a case's name: "interleaved pp4 vp2 m8 {'overlap_p2p_comm': True} fwd_only MUTANT
/// unbatched-send_first".
struct Case {
  std::string schedule{};
  std::map<std::string, std::int32_t> numbers{};  ///< pp, vp, m, v, p, chunks
  std::string config{};
  bool forward_only = false;
  std::string mutant{};
};

Case parse_case(std::string name) {
  Case result;
  if (const std::size_t at = name.find(" MUTANT "); at != std::string::npos) {
    result.mutant = name.substr(at + 8);
    name.resize(at);
  }
  if (const std::size_t open = name.find('{'); open != std::string::npos) {
    const std::size_t close = name.rfind('}');
    result.config = name.substr(open, close - open + 1);
    name.erase(open, close - open + 1);
  }
  std::istringstream words(name);
  for (std::string word; words >> word;) {
    const std::size_t digits = word.find_first_of("0123456789");
    const std::string key = word.substr(0, digits);
    std::int32_t value = 0;
    const bool is_number = digits != std::string::npos && digits > 0 &&
                           key.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos &&
                           std::from_chars(word.data() + digits, word.data() + word.size(), value).ptr ==
                               word.data() + word.size();
    const bool known =
        key == "pp" || key == "vp" || key == "m" || key == "v" || key == "p" || key == "chunks";
    if (is_number && known) {
      result.numbers[key] = value;
    } else if (word == "fwd_only") {
      result.forward_only = true;
    } else if (word != "vpNone") {
      result.schedule += (result.schedule.empty() ? "" : " ") + word;
    }
  }
  return result;
}

/// Batches become single messages, in the order that a port without batches might choose.
Timeline unbatched(const Timeline& timeline, const std::string& order) {
  Timeline result;
  result.placement = timeline.placement;
  for (std::int32_t rank = 0; rank < timeline.size(); ++rank) {
    const RankTimeline& from = timeline.ranks[static_cast<std::size_t>(rank)];
    RankTimeline& to = result.ranks.emplace_back();
    std::uint32_t id = 100'000;
    std::map<std::uint32_t, std::vector<std::uint32_t>> parts;  // of a batch
    for (const Step& step : from.steps) {
      const auto list = from.messages_of(step);
      if (step.kind == StepKind::kBatch) {
        std::vector<Message> messages(list.begin(), list.end());
        const bool sends_first = order == "send_first" || (order == "even_odd" && rank % 2 == 0);
        if (order != "program")
          std::ranges::stable_partition(messages, [&](const Message& m) { return m.send == sends_first; });
        for (const Message& message : messages) {
          to.issue(StepKind::kAsync, ++id, {&message, 1});
          parts[step.id].push_back(id);
        }
      } else if (step.kind == StepKind::kWait && parts.contains(step.id)) {
        for (const std::uint32_t part : parts[step.id]) to.wait(part);
      } else if (list.empty()) {
        to.steps.push_back(step);
      } else {
        to.issue(step.kind, step.id, list);
      }
    }
  }
  return result;
}

MegatronQuery megatron_of(const Case& the) {
  MegatronQuery query{
      .schedule = the.numbers.contains("vp") ? MegatronSchedule::kInterleaved : MegatronSchedule::k1F1B,
      .stages = the.numbers.at("pp"),
      .chunks = the.numbers.contains("vp") ? the.numbers.at("vp") : 1,
      .micro_batches = the.numbers.at("m"),
      .forward_only = the.forward_only};
  const auto says = [&](std::string_view text) { return the.config.find(text) != std::string::npos; };
  query.options.batch_p2p_comm = !says("'batch_p2p_comm': False");
  query.options.overlap_p2p_comm = says("'overlap_p2p_comm': True");
  query.options.overlap_p2p_comm_warmup_flush = says("'overlap_p2p_comm_warmup_flush': True");
  query.options.variable_seq_lengths = says("'variable_seq_lengths': True");
  if (says("'group': 3")) query.options.group_sizes = {3};
  if (says("rank0:6, others:4")) query.options.group_sizes = {6, 4, 4, 4};
  return query;
}

Timeline torch_ir_of(const Case& the, const std::string& name) {
  TorchQuery query{.ranks = the.numbers.at("pp"),
                   .stages_per_rank = the.numbers.at("v"),
                   .micro_batches = the.numbers.at("m")};
  TorchOrder order;
  if (name.ends_with(".csv")) {
    std::ifstream file(shared_directory() + "/golden/pytorch_pipelining.json");
    const Json golden = Json::parse(file);
    std::string csv;
    for (const Json& element : golden["cases"]) {
      if (element["schedule"] != name) continue;
      for (const Json& row : element["compute_only"]) csv += row.get<std::string>() + "\n";
    }
    auto parsed = parse_torch_csv(csv, name, TorchLetters::kNew);
    EXPECT_TRUE(parsed);
    if (parsed) order = *parsed;
  } else {
    for (const auto schedule : {TorchSchedule::kGPipe, TorchSchedule::k1F1B, TorchSchedule::kLoopedBfs,
                                TorchSchedule::kInterleaved1F1B, TorchSchedule::kInterleavedZeroBubble,
                                TorchSchedule::kZbv, TorchSchedule::kDualPipeV}) {
      if (torch_schedule_name(schedule) == name) query.schedule = schedule;
    }
    EXPECT_EQ(torch_schedule_name(query.schedule), name);
    order = torch_order(query);
  }
  const auto lowered = lower_torch_order(order, query.stages(), query.micro_batches);
  EXPECT_TRUE(lowered);
  return lowered ? torch_timeline(lowered->compute_comms, lowered->stage_ranks) : Timeline{};
}

Timeline zero_bubble_of(const Case& the, std::string name) {
  ZeroBubbleQuery query{.stages = the.numbers.at("p"), .micro_batches = the.numbers.at("m")};
  if (const std::size_t at = name.find("(post_validation)"); at != std::string::npos) {
    query.post_validation = true;
    name.resize(at);
  }
  using enum ZeroBubbleSchedule;
  const std::map<std::string, ZeroBubbleSchedule> names = {{"1f1b", k1F1B},
                                                           {"zb", kZb},
                                                           {"zb-h1-h2(manual_order, max_mem=2p)", kZb},
                                                           {"vpp", kVpp},
                                                           {"zbv", kZbv},
                                                           {"zbv_greedy_min", kZbvGreedyMin},
                                                           {"zbv_greedy_half", kZbvGreedyHalf},
                                                           {"v1f1b", kV1F1B}};
  EXPECT_TRUE(names.contains(name)) << name;
  query.schedule = names.at(name);
  query.chunks = std::max(chunks_of(query.schedule), query.schedule == kVpp ? 2 : 1);
  const auto order = zero_bubble_order(query);
  EXPECT_TRUE(order);
  const auto messages = zero_bubble_with_messages(query, *order);
  EXPECT_TRUE(messages);
  return zero_bubble_timeline(*messages);
}

Timeline timeline_of(const Case& the) {
  const std::string& name = the.schedule;
  if (name.starts_with("DualPipe")) {
    const auto kind = name == "DualPipe" ? DualPipeKind::kBothWays : DualPipeKind::kVee;
    return dualpipe_timeline(kind, the.numbers.at("pp"), the.numbers.at("chunks"));
  }
  if (name.ends_with("(runtime)")) {
    const auto schedule =
        name.find("GPipe") != std::string::npos ? TorchRuntimeSchedule::kGPipe : TorchRuntimeSchedule::k1F1B;
    return torch_runtime_timeline(schedule, the.numbers.at("pp"), the.numbers.at("m"), false);
  }
  if (name.starts_with("torch-IR ")) return torch_ir_of(the, name.substr(9));
  if (name.starts_with("zb ")) return zero_bubble_of(the, name.substr(3));
  return megatron_timeline(megatron_of(the));
}

Job job_of(const Timeline& timeline) {
  JobBuilder builder;
  builder.set_library(Library::kTorch);
  std::vector<std::int32_t> ranks(timeline.ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const CommIndex pipeline = builder.communicator("pp", "pp", ranks);
  const PipelinePlace place{
      .ranks = ranks, .pipeline = pipeline, .world = builder.communicator("world", "world", ranks)};
  ScheduleLowering lowering(builder, timeline, {});
  for (const std::int32_t rank : ranks) {
    std::vector<Operation> operations;
    lowering.append(rank, place, operations);
    Program& program = builder.program(rank);
    program.operations = std::move(operations);
    program.end = {.kind = EndKind::kExited, .status = 0};
  }
  return std::move(builder).build();
}

bool finishes(const Job& job, BlockingModel model) {
  return replay(job, match(job), {.model = model}).finished();
}

TEST(DeadlockVerdicts, AreThoseOfTheReferenceSimulator) {
  if (shared_directory().empty()) GTEST_SKIP() << "no shared inputs; set LOCKSTEP_SHARED";
  std::ifstream file(shared_directory() + "/golden/deadlock_verdicts.json");
  const Json results = Json::parse(file)["results"];
  ASSERT_FALSE(results.empty());
  for (const Json& row : results) {
    SCOPED_TRACE(row["case"].get<std::string>());
    std::string name = row["case"].get<std::string>();
    // The schedule of this one is called a mutant itself; its batches are as they were.
    constexpr std::string_view kDisagree = "MUTANT ranks disagree on microbatch_group_size_per_vp_stage";
    if (name.starts_with(kDisagree)) name = "interleaved" + name.substr(kDisagree.size());
    const Case the = parse_case(name);
    Timeline timeline = timeline_of(the);
    if (!the.mutant.empty()) {
      ASSERT_TRUE(the.mutant.starts_with("unbatched-")) << the.mutant;
      timeline = unbatched(timeline, the.mutant.substr(10));
    }
    const Job job = job_of(timeline);
    for (const auto& [key, model] :
         {std::pair("lazy", BlockingModel::kLazy), std::pair("eager", BlockingModel::kEager),
          std::pair("block", BlockingModel::kBlocking)}) {
      if (!row.contains(key)) continue;
      EXPECT_EQ(finishes(job, model), row[key] == "ok") << key;
    }
  }
}

/// What a recorded trace may not contradict: two single messages between two ranks that face each other
/// stand.
TEST(DeadlockVerdicts, FindTheFacingSends) {
  const Timeline timeline = megatron_timeline({.stages = 2, .micro_batches = 4});
  EXPECT_TRUE(finishes(job_of(timeline), BlockingModel::kBlocking));
  EXPECT_FALSE(finishes(job_of(unbatched(timeline, "send_first")), BlockingModel::kLazy));
}

}  // namespace
}  // namespace lockstep::plan
