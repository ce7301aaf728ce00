// What must end with a message, or skip a step on all ranks, and never hang.
#include <gtest/gtest.h>

#include "pipeline_run.h"

namespace zero1 {
namespace {

TEST(Faults, ANanInOneGradientSkipsTheStepEverywhere) {
  for (const int rank : {0, 3}) {
    Config config = small_config();
    config.pipe = 2;
    config.data = 2;
    config.partition = "type:embed";
    config.steps = 4;
    config.nan_step = 2;
    config.nan_rank = rank;
    const Trained run = train_in_threads<F64>(config, small_corpus());  // throws if weights of copies differ
    for (int step = 0; step < config.steps; ++step)
      EXPECT_EQ(std::isnan(run.grad_norms[static_cast<std::size_t>(step)]), step == 2) << step;
    const Trained truth = train_plainly<F64>(config, small_corpus(), {2});
    EXPECT_LE(difference({{}, {}, run.weights}, {{}, {}, truth.weights}).weights, 1e-12);
  }
}

TEST(Faults, TheLossScaleHalvesAndDoubles) {
  Config config;
  config.loss_scale = 8;
  config.scale_window = 2;
  LossScaler scaler(config);
  std::vector<double> scales;
  for (const bool overflow : {true, false, false, false, true, true, true, true, true}) {
    scaler.update(overflow);
    scales.push_back(scaler.scale());
  }
  EXPECT_EQ(scales, (std::vector<double>{4, 4, 8, 8, 4, 2, 1, 1, 1}));
}

std::string fault_of(const Config& config) {
  try {
    check_sizes(config);
    train_in_threads<F32>(config, small_corpus());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Faults, AnEmptyStageIsNamed) {
  Config config = small_config();
  config.pipe = 4;
  config.partition = "type:embed";
  EXPECT_NE(fault_of(config).find("owns layers [11, 11) and no parameters"), std::string::npos)
      << fault_of(config);
}

TEST(Faults, AModelThatDoesNotDivideIsNamed) {
  Config config = small_config();
  config.model.heads = 4;
  EXPECT_NE(fault_of(config).find("does not divide"), std::string::npos);
}

TEST(Faults, UnknownPartitionsAreNamed) {
  Config config = small_config();
  for (const char* method : {"type:nothing", "type:(", "at:3,x", "at:", "at:1,2", "at:99", "best", ""}) {
    config.pipe = 2;
    config.partition = method;
    EXPECT_NE(fault_of(config).find("--partition"), std::string::npos) << method;
  }
}

/// What each of two ranks is told when their arguments differ.
std::vector<std::string> told(const std::vector<std::string>& steps, const std::vector<std::string>& faults) {
  std::vector<std::string> messages(steps.size());
  ThreadCommunicator::run(static_cast<int>(steps.size()), [&](ThreadCommunicator world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    try {
      check_arguments(world, {{"--pipe", "2"}, {"--steps", steps[rank]}}, faults[rank]);
    } catch (const ConfigError& error) {
      messages[rank] = error.what();
    }
  });
  return messages;
}

TEST(CheckArguments, PassesWhereAllAgree) {
  EXPECT_EQ(told({"5", "5"}, {"", ""}), (std::vector<std::string>{"", ""}));
}

TEST(CheckArguments, NamesTheOptionAndTheRanksOnEveryRank) {
  for (const std::string& message : told({"5", "6", "5"}, {"", "", ""})) {
    EXPECT_NE(message.find("--steps differs between ranks"), std::string::npos) << message;
    EXPECT_NE(message.find("ranks 0, 2"), std::string::npos) << message;
    EXPECT_NE(message.find("rank 1"), std::string::npos) << message;
  }
}

TEST(CheckArguments, AFaultOfOneRankEndsAll) {
  const std::vector<std::string> messages = told({"5", "5"}, {"", "--text: cannot be read"});
  EXPECT_EQ(messages[0], "not started: rank 1 cannot use its arguments");
  EXPECT_EQ(messages[1], "--text: cannot be read");
}

}  // namespace
}  // namespace zero1
