// Decay and no-decay groups as Megatron makes them, and the words for a group that comes out empty.
#include "plan/parameter_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>

namespace lockstep::plan {
namespace {

bool is_bias(const Parameter& parameter) {
  return parameter.name == "bias" || parameter.name.ends_with(".bias") || parameter.name.ends_with("_bias");
}

/// A group takes what its predicate says; `lacks` are the words for a stage without any of it.
struct GroupSpec {
  std::string name{};
  std::function<bool(const OwnedParameter&)> takes{};
  std::string lacks{};
};

std::string joined(const std::vector<std::string>& words, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? last : ", ";
    text += words[i];
  }
  return text;
}

std::function<bool(const OwnedParameter&)> no_decay_rule(const Plan& plan, std::vector<std::string>& words) {
  words = {"no bias"};
  if (plan.optimizer.rule == GroupRule::kMegatron) {
    for (const std::string& module : plan.optimizer.no_decay_modules) words.push_back("no " + module);
    return [&plan](const OwnedParameter& owned) {
      const std::string& module =
          owned.parameter->module.empty() ? plan.layers[owned.layer].class_name : owned.parameter->module;
      return is_bias(*owned.parameter) ||
             std::ranges::any_of(plan.optimizer.no_decay_modules, [&module](const std::string& part) {
               return module.find(part) != std::string::npos;
             });
    };
  }
  words.push_back("no one-dimensional parameter");
  return [](const OwnedParameter& owned) {
    return is_bias(*owned.parameter) || owned.parameter->shape.sizes.size() == 1;
  };
}

std::vector<GroupSpec> group_specs(const Plan& plan) {
  if (plan.optimizer.rule == GroupRule::kSingle)
    return {{"all", [](const OwnedParameter&) { return true; }, "no parameters that are trained"}};
  std::vector<std::string> words;
  const auto no_decay = no_decay_rule(plan, words);
  const GroupSpec last{"no-decay", no_decay, joined(words, " and ")};
  const std::string only = "nothing that decays";
  if (plan.optimizer.rule != GroupRule::kThreeWay)
    return {{"decay", [no_decay](const OwnedParameter& owned) { return !no_decay(owned); }, only}, last};
  const std::size_t middle = (plan.layers.size() + 1) / 2;
  const auto in_half = [no_decay, middle](bool first) {
    return [no_decay, middle, first](const OwnedParameter& owned) {
      return !no_decay(owned) && (owned.layer < middle) == first;
    };
  };
  return {{"first-half", in_half(true), "nothing that decays in the first half of the layers"},
          {"second-half", in_half(false), "nothing that decays in the second half of the layers"},
          last};
}

/// "holds only the tied embedding, which": the layers of the stage that have parameters.
std::string contents(const Plan& plan, const Stage& stage) {
  std::vector<std::string> names;
  for (const OwnedParameter& owned : stage.parameters) {
    const Layer& layer = plan.layers[owned.layer];
    const std::string name = fmt::format("the {}{}", layer.tied.empty() ? "" : "tied ", display_name(layer));
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  constexpr std::size_t kMostNamed = 4;
  if (names.empty()) return "holds no parameters: it has";
  if (names.size() > kMostNamed) return fmt::format("holds {} kinds of layers, which have", names.size());
  return fmt::format("holds only {}, which {}", joined(names, " and "), names.size() == 1 ? "has" : "have");
}

}  // namespace

void make_groups(const Plan& plan, std::int64_t index, bool drop_empty, Stage& stage) {
  std::vector<std::string> reasons;
  for (const GroupSpec& spec : group_specs(plan)) {
    OptimizerGroup group{spec.name, {}};
    for (const OwnedParameter& owned : stage.parameters)
      if (!owned.parameter->frozen && spec.takes(owned)) group.parameters.push_back(owned);
    if (!group.parameters.empty() || !drop_empty) {
      stage.groups.push_back(std::move(group));
      continue;
    }
    stage.dropped.push_back(spec.name);
    reasons.push_back(fmt::format("{} {}, so its {} group is empty and dropped", contents(plan, stage),
                                  spec.lacks, spec.name));
  }
  if (!reasons.empty()) stage.why_dropped = fmt::format("stage {} {}", index, fmt::join(reasons, "; it "));
}

}  // namespace lockstep::plan
