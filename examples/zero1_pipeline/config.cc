#include "config.h"

#include <sstream>

namespace zero1 {

const char* name_of(Norm norm) {
  switch (norm) {
    case Norm::kPerGroup:
      return "per_group";
    case Norm::kFused:
      return "fused";
    case Norm::kAgreedGroups:
      return "agreed_groups";
  }
  return "";
}

const char* name_of(Reduce reduce) {
  switch (reduce) {
    case Reduce::kAllReduce:
      return "all_reduce";
    case Reduce::kReduceScatter:
      return "reduce_scatter";
  }
  return "";
}

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::kF64:
      return F64::kName;
    case Precision::kF32:
      return F32::kName;
    case Precision::kMixed:
      return Mixed::kName;
  }
  return "";
}

void check_sizes(const Config& config) {
  const auto demand = [](bool holds, const std::string& message) {
    if (!holds) throw ConfigError(message);
  };
  const ModelShape& model = config.model;
  demand(config.pipe >= 1 && config.data >= 1, "--pipe and --data are at least 1");
  demand(config.micro_batches >= 1 && config.micro_batch_size >= 1,
         "--micro-batches and --micro-batch-size are at least 1");
  demand(model.hidden >= 1 && model.heads >= 1 && model.sequence >= 1 && model.blocks >= 1,
         "--hidden, --heads, --sequence and --blocks are at least 1");
  demand(model.hidden % model.heads == 0, "--hidden " + std::to_string(model.hidden) +
                                              " does not divide into --heads " + std::to_string(model.heads) +
                                              " heads of equal width");
  demand(config.steps >= 0, "--steps is at least 0");
  demand(config.scale_window >= 1, "--scale-window is at least 1");
  demand(config.clip >= 0 && config.loss_scale >= 0, "--clip and --loss-scale are not negative");
}

std::vector<std::pair<std::string, std::string>> described(const Config& config) {
  std::vector<std::pair<std::string, std::string>> all;
  const auto add = [&](const char* name, const auto& value) {
    std::ostringstream text;
    text.precision(17);
    text << value;
    all.emplace_back(name, text.str());
  };
  add("--pipe", config.pipe);
  add("--data", config.data);
  add("--partition", config.partition);
  add("--hidden", config.model.hidden);
  add("--heads", config.model.heads);
  add("--blocks", config.model.blocks);
  add("--sequence", config.model.sequence);
  add("--text", config.model.words);
  add("--micro-batches", config.micro_batches);
  add("--micro-batch-size", config.micro_batch_size);
  add("--steps", config.steps);
  add("--norm", name_of(config.norm));
  add("--reduce", name_of(config.reduce));
  add("--precision", name_of(config.precision));
  add("--ordered", config.ordered);
  add("--rate", config.rate);
  add("--beta1", config.beta1);
  add("--beta2", config.beta2);
  add("--epsilon", config.epsilon);
  add("--weight-decay", config.weight_decay);
  add("--clip", config.clip);
  add("--loss-scale", config.loss_scale);
  add("--scale-window", config.scale_window);
  add("--seed", config.seed);
  add("--nan-step", config.nan_step);
  add("--nan-rank", config.nan_rank);
  return all;
}

}  // namespace zero1
