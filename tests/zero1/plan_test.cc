// The plan that the program prints: what it says of layers, groups and cuts is what the program does.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "pipeline_run.h"
#include "print_plan.h"

namespace zero1 {
namespace {

TEST(Plan, SaysWhatIsCutHow) {
  for (const char* method : {"type:embed", "uniform", "parameters", "type:transformer", "at:5"}) {
    for (const Norm norm : {Norm::kPerGroup, Norm::kFused, Norm::kAgreedGroups}) {
      Config config = small_config();
      config.pipe = 2;
      config.partition = method;
      config.norm = norm;
      const nlohmann::json plan = nlohmann::json::parse(plan_json(config));
      EXPECT_EQ(plan["schema"], "lockstep-plan/1");
      EXPECT_EQ(plan["topology"], (nlohmann::json{{"pipe", 2}, {"data", 1}, {"tensor", 1}}));
      EXPECT_EQ(plan["optimizer"]["norm"], norm == Norm::kPerGroup ? "per_group"
                                           : norm == Norm::kFused  ? "once"
                                                                   : "vector");
      EXPECT_EQ(plan["optimizer"]["drop_empty"], norm != Norm::kAgreedGroups);
      EXPECT_EQ(plan["partition"].contains("parts"), std::string(method).starts_with("at:"));
    }
  }
}

/// The reader of a plan decides by class and name which parameters decay: its rule must come to what the
/// layers say.
TEST(Plan, NamesParametersSoThatGroupsFollow) {
  const Config config = small_config();
  const nlohmann::json plan = nlohmann::json::parse(plan_json(config));
  const std::vector<LayerSpec> specs = layer_specs(config.model);
  ASSERT_EQ(plan["layers"].size(), specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    std::shared_ptr<Embedding<F32>> tied;
    const auto layer = make_layer<F32>(specs[i], i, config.model, tied);
    const std::vector<Parameter<F32>*> parameters = layer->parameters();
    const nlohmann::json& planned = plan["layers"][i].value("parameters", nlohmann::json::array());
    ASSERT_EQ(planned.size(), parameters.size()) << specs[i].type;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const std::string name = planned[p]["name"];
      const bool is_bias = name == "bias" || name.ends_with(".bias");
      EXPECT_EQ(!is_bias && planned[p]["module"] != "LayerNorm", parameters[p]->decays) << name;
      EXPECT_EQ(planned[p]["shape"].get<std::vector<std::size_t>>(), parameters[p]->shape) << name;
    }
  }
}

TEST(Plan, IsRefusedForAStageWithoutParameters) {
  Config config = small_config();
  config.pipe = 4;
  config.partition = "type:embed";
  EXPECT_THROW(plan_json(config), ConfigError);
}

}  // namespace
}  // namespace zero1
