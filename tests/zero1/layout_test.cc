// Partitions and schedules against values recorded from DeepSpeed at 85ce85dd, and what must hold for any
// sizes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "partition.h"
#include "schedule.h"

namespace zero1 {
namespace {

std::filesystem::path golden_folder() {
  const char* shared = std::getenv("LOCKSTEP_SHARED");
  return std::filesystem::path(shared != nullptr ? shared : LOCKSTEP_SHARED_DEFAULT) / "golden/deepspeed";
}

TEST(Partition, OfTheFoundingReport) {
  ModelShape model;
  const std::vector<LayerSpec> specs = layer_specs(model);
  EXPECT_EQ(partition("type:embed", specs, model, 2), (Parts{0, 7, 9}));
  EXPECT_EQ(partition("type:EMBED", specs, model, 2), (Parts{0, 7, 9}));
  EXPECT_EQ(partition("type:transformer", specs, model, 2), (Parts{0, 4, 9}));
  EXPECT_EQ(partition("type:embed|transformer", specs, model, 2), (Parts{0, 4, 9}));
  EXPECT_EQ(partition("uniform", specs, model, 2), (Parts{0, 4, 9}));
  EXPECT_EQ(partition("parameters", specs, model, 2), (Parts{0, 4, 9}));
  EXPECT_EQ(partition("at:6,8", specs, model, 3), (Parts{0, 6, 8, 9}));
}

TEST(Partition, BalancedIsOptimalOnSmallInputs) {
  for (unsigned code = 0; code < 729; ++code) {  // six weights of 1 to 3
    std::vector<std::size_t> weights;
    for (unsigned rest = code, i = 0; i < 6; ++i, rest /= 3) weights.push_back(1 + rest % 3);
    const auto heaviest = [&](const Parts& parts) {
      std::size_t most = 0;
      for (std::size_t p = 0; p + 1 < parts.size(); ++p) {
        std::size_t sum = 0;
        for (std::size_t i = parts[p]; i < parts[p + 1]; ++i) sum += weights[i];
        most = std::max(most, sum);
      }
      return most;
    };
    std::size_t best = 1000;
    for (std::size_t a = 0; a <= 6; ++a) {
      for (std::size_t b = a; b <= 6; ++b) best = std::min(best, heaviest({0, a, b, 6}));
    }
    EXPECT_EQ(heaviest(partition_balanced(weights, 3)), best) << code;
  }
}

TEST(Partition, EqualsTheGoldenOnes) {
  std::ifstream in(golden_folder() / "partitions.json");
  if (!in) GTEST_SKIP() << "no " << golden_folder() / "partitions.json";
  const nlohmann::json golden = nlohmann::json::parse(in);
  for (const auto& entry : golden["partition_balanced"]) {
    EXPECT_EQ(partition_balanced(entry["weights"].get<std::vector<std::size_t>>(), entry["num_parts"]),
              entry["parts_85ce85dd"].get<Parts>())
        << entry;
  }
  for (const auto& entry : golden["partition_uniform"])
    EXPECT_EQ(partition_uniform(entry["num_items"], entry["num_parts"]), entry["parts"].get<Parts>())
        << entry;
}

TEST(Schedule, EqualsTheGoldenOnes) {
  std::ifstream in(golden_folder() / "schedules.json");
  if (!in) GTEST_SKIP() << "no " << golden_folder() / "schedules.json";
  const nlohmann::json golden_schedules = nlohmann::json::parse(in);
  for (const auto& entry : golden_schedules["TrainSchedule"]) {
    const int micro_batches = entry["micro_batches"];
    const int stages = entry["stages"];
    for (const auto& golden : entry["per_stage"]) {
      const int stage = golden["stage"];
      nlohmann::json steps = nlohmann::json::array();
      for (const auto& instructions : train_schedule(micro_batches, stages, stage)) {
        nlohmann::json step = nlohmann::json::array();
        for (const ScheduledInstruction& scheduled : instructions) {
          nlohmann::json one = {name_of(scheduled.instruction)};
          if (scheduled.buffer >= 0) one.push_back(scheduled.buffer);
          step.push_back(one);
        }
        steps.push_back(step);
      }
      EXPECT_EQ(steps, golden["steps"])
          << micro_batches << " micro-batches, stage " << stage << " of " << stages;
      EXPECT_EQ(pipe_buffers(micro_batches, stages, stage), golden["num_pipe_buffers"]);
    }
  }
}

/// Runs all stages together with messages that block until both sides are there.
bool finishes_with_rendezvous(int micro_batches, int stages) {
  struct Message {
    bool sends = false;
    int peer = 0;
    Instruction what = Instruction::kSendGrad;
    int micro_batch = 0;
  };
  std::vector<std::deque<Message>> programs;
  for (int stage = 0; stage < stages; ++stage) {
    std::deque<Message>& program = programs.emplace_back();
    for (const auto& step : train_schedule(micro_batches, stages, stage)) {
      for (const ScheduledInstruction& s : step) {
        if (s.instruction == Instruction::kSendActivation)
          program.push_back({true, stage + 1, s.instruction, s.micro_batch});
        if (s.instruction == Instruction::kRecvGrad)
          program.push_back({false, stage + 1, Instruction::kSendGrad, s.micro_batch});
        if (s.instruction == Instruction::kSendGrad)
          program.push_back({true, stage - 1, s.instruction, s.micro_batch});
        if (s.instruction == Instruction::kRecvActivation)
          program.push_back({false, stage - 1, Instruction::kSendActivation, s.micro_batch});
      }
    }
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (int stage = 0; stage < stages; ++stage) {
      auto& mine = programs[static_cast<std::size_t>(stage)];
      if (mine.empty() || !mine.front().sends) continue;
      auto& theirs = programs[static_cast<std::size_t>(mine.front().peer)];
      if (theirs.empty() || theirs.front().sends || theirs.front().peer != stage) continue;
      if (theirs.front().what != mine.front().what || theirs.front().micro_batch != mine.front().micro_batch)
        return false;
      mine.pop_front();
      theirs.pop_front();
      moved = true;
    }
  }
  return std::all_of(programs.begin(), programs.end(), [](const auto& program) { return program.empty(); });
}

TEST(Schedule, FinishesWithMessagesThatBlock) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int micro_batches = 1; micro_batches <= 12; ++micro_batches)
      EXPECT_TRUE(finishes_with_rendezvous(micro_batches, stages)) << micro_batches << " over " << stages;
  }
}

TEST(Schedule, HoldsNoMoreMicroBatchesThanBuffers) {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int stage = 0; stage < stages; ++stage) {
      std::map<int, int> holder;  // buffer -> micro-batch
      for (const auto& step : train_schedule(9, stages, stage)) {
        for (const ScheduledInstruction& s : step) {
          if (s.instruction == Instruction::kForwardPass) {
            EXPECT_FALSE(holder.contains(s.buffer));
            holder[s.buffer] = s.micro_batch;
          }
          if (s.instruction == Instruction::kBackwardPass) {
            EXPECT_EQ(holder[s.buffer], s.micro_batch);
            holder.erase(s.buffer);
          }
        }
      }
      EXPECT_TRUE(holder.empty());
    }
  }
}

}  // namespace
}  // namespace zero1
