#include "support/random_plan.h"

#include <nlohmann/json.hpp>

namespace lockstep::testing {
namespace {

using Json = nlohmann::ordered_json;

class PlanDrawer {
 public:
  PlanDrawer(Random& random, const RandomPlanOptions& options) : random_(random), options_(options) {}

  std::string draw() {
    framework_ = pick({"deepspeed", "megatron", "torch"});
    draw_topology();
    plan_["framework"] = {{"name", framework_}, {"version", version()}};
    plan_["datatype"] = datatype_ = pick({"f16", "bf16", "f32"});
    draw_layers();
    if (framework_ == "deepspeed") draw_deepspeed();
    if (framework_ == "megatron") draw_megatron();
    if (framework_ == "torch") draw_torch();
    if (options_.overrides) draw_overrides();
    plan_["topology"] = topology_;
    plan_["schedule"] = schedule_;
    return plan_.dump();
  }

 private:
  std::string pick(const std::vector<std::string>& from) { return random_.pick(from); }
  std::int64_t number(std::int64_t low, std::int64_t high) { return low + random_.below(high - low + 1); }
  bool chance(int percent) { return random_.chance(percent); }

  std::string version() {
    if (framework_ == "deepspeed") return pick({"0.5.5", "0.8.0", "0.10.3", "0.16.4"});
    return framework_ == "megatron" ? "0.16.1" : "2.9.0";
  }

  /// Mostly small worlds: they hold as many sorts of plans, and thousands can be replayed.
  void draw_topology() {
    std::int64_t room = options_.most_ranks;
    if (chance(85)) room = std::min<std::int64_t>(room, 32);
    pipe_ = chance(25) ? 1 : number(1, std::min<std::int64_t>(8, room));
    room /= pipe_;
    data_ = number(1, std::min<std::int64_t>(64, room));
    room /= data_;
    tensor_ = std::min<std::int64_t>(room, std::int64_t{1} << number(0, 3));
    topology_ = {{"pipe", pipe_}, {"data", data_}, {"tensor", tensor_}};
  }

  void draw_layers() {
    chunks_ = 1;
    schedule_ = {{"name", pipe_ == 1 ? "none" : "1f1b"}, {"micro_batches", number(1, options_.most_micro_batches)}};
    if (pipe_ > 1 && framework_ == "megatron" && chance(35)) draw_interleaved();
    else if (pipe_ > 1 && framework_ == "megatron" && chance(35)) draw_zero_bubble();
    if (pipe_ > 1 && framework_ == "torch") draw_torch_schedule();
    const bool experts = framework_ == "megatron" ? data_ % 2 == 0 && tensor_ == 1 && chance(20)
                                                  : framework_ == "deepspeed" && data_ % 2 == 0 && chance(20);
    // Each stage has each sort of parameter, so that no group and no set of experts is missing anywhere.
    const std::int64_t blocks = pipe_ * chunks_ * number(1, 2);
    Json block = {{"class", "Block"},
                  {"repeat", blocks},
                  {"parameters",
                   {{{"name", "w"}, {"shape", {number(1, 64), 8}}}, {{"name", "b.bias"}, {"shape", {8}}}}}};
    if (chance(50)) block["outputs"] = {{{"shape", {number(1, 9), 4}}}};
    if (experts) {
      block["experts"] = true;
      block["parameters"].push_back({{"name", "e"}, {"shape", {8, 8}}, {"expert", true}});
      topology_["expert"] = 2;
    }
    const Json shared = {{"class", "Embedding"},
                         {"tied", "embedding"},
                         {"tied_weights", {"w"}},
                         {"parameters", {{{"name", "w"}, {"shape", {32, 8}}}}}};
    plan_["layers"] = Json::array({block});
    const std::int64_t parts_wanted = pipe_ * chunks_;
    if (framework_ != "torch" && blocks > parts_wanted && chance(50)) {
      // Two more layers at the ends, cut so that a block stands beside each.
      plan_["layers"] = {shared, block, shared};
      Json parts = {0};
      for (std::int64_t part = 1; part < parts_wanted; ++part) parts.push_back(1 + part * (blocks / parts_wanted));
      parts.push_back(blocks + 2);
      plan_["partition"] = {{"parts", parts}};
    } else {
      plan_["partition"] = {{"method", "uniform"}};
    }
  }

  void draw_interleaved() {
    chunks_ = number(2, 3);
    schedule_ = {{"name", "interleaved"}, {"virtual_stages", chunks_}, {"micro_batches", pipe_ * number(1, 3)}};
    const bool overlap = pipe_ > 2 && chance(40);
    if (overlap) schedule_["batch_p2p_comm"] = false;
    if (overlap) schedule_["overlap_p2p_comm"] = true;
    // With as many micro-batches as stages only a buffer for the shapes keeps the ranks from standing still.
    if (chance(20) && schedule_["micro_batches"] > pipe_) schedule_["variable_seq_lengths"] = true;
    // Two stages exchange gradients for activations there (refused by Megatron's command line only).
    if (pipe_ == 2) {
      chunks_ = 1;
      schedule_ = {{"name", "1f1b"}, {"micro_batches", number(1, options_.most_micro_batches)}};
    }
  }

  void draw_zero_bubble() {
    const std::string name = pick({"zb_1f1b", "zb", "zb_vpp", "zbv", "zbv_greedy_min", "zbv_greedy_half", "v1f1b"});
    std::int64_t micro_batches = number(1, 2 * options_.most_micro_batches);
    if (name == "zb_vpp") micro_batches = pipe_ * number(1, 3);
    if (name == "zb_vpp") chunks_ = number(2, 3);
    if (name.find('v') != std::string::npos && name != "zb_vpp") chunks_ = 2;
    schedule_ = {{"name", name}, {"virtual_stages", chunks_}, {"micro_batches", micro_batches}};
  }

  void draw_torch_schedule() {
    const std::string name = pick({"1f1b", "gpipe", "looped_bfs", "interleaved", "interleaved_zero_bubble", "zbv",
                                   "dualpipev", "dualpipe", "deepseek_dualpipev"});
    std::int64_t micro_batches = number(1, options_.most_micro_batches);
    if (name == "zbv" || name.ends_with("dualpipev")) chunks_ = 2;
    if (name.ends_with("dualpipev")) micro_batches = 2 * pipe_ + number(0, 4);
    if (name == "dualpipe") micro_batches = 2 * (pipe_ + number(0, 2));
    if (name == "1f1b") micro_batches = std::max(micro_batches, pipe_);  // fewer than stages are refused
    if (name == "looped_bfs" || name.starts_with("interleaved")) chunks_ = number(1, 3);
    if (name.starts_with("interleaved")) micro_batches = pipe_ * number(1, 2);
    schedule_ = {{"name", name}, {"virtual_stages", chunks_}, {"micro_batches", micro_batches}};
    if (name == "dualpipe" || name == "deepseek_dualpipev") return;
    // All stages know their input, or none; where plans may be wrong, some.
    Json stages = Json::array();
    const bool all = chance(40);
    for (std::int64_t stage = 0; stage < pipe_ * chunks_; ++stage)
      if (all ? !options_.overrides || chance(90) : options_.overrides && chance(10)) stages.push_back(stage);
    if (!stages.empty()) schedule_["stages_with_input_args"] = stages;
  }

  void draw_deepspeed() {
    Json optimizer = {{"groups", pick({"single", "megatron", "one_dimensional"})}, {"drop_empty", chance(50)}};
    const int stage = pipe_ > 1 ? random_.between(0, 1) : random_.between(0, 3);
    if (stage > 0) {
      plan_["zero"] = {{"stage", stage}, {"reduce_bucket_size", number(16, 2000)}};
      if (stage < 3 && chance(30)) optimizer["stepper"] = "bf16";
    } else {
      optimizer["stepper"] = pick({"engine", "fused", "unfused", "bf16"});
    }
    optimizer["loss_scale"] = chance(50);
    plan_["optimizer"] = optimizer;
  }

  void draw_megatron() {
    plan_["optimizer"] = {{"stepper", pick({"megatron", "megatron_distributed"})},
                          {"bucket_size", number(1, 2000)},
                          {"loss_scale", chance(50)},
                          {"chained", chance(30)},
                          {"per_token_loss", chance(30)},
                          {"clip_grad", chance(70) ? 1.0 : 0.0}};
    if (plan_["optimizer"]["stepper"] == "megatron_distributed" && data_ % 2 == 0 && chance(20)) topology_["optimizer_instances"] = 2;
    if (chunks_ == 1 && pipe_ > 1 && schedule_["name"] == "1f1b") {
      if (chance(20)) schedule_["variable_seq_lengths"] = true;
      if (chance(20)) schedule_["batch_p2p_comm"] = false;
    }
    const bool has_room = 2 * pipe_ * data_ * tensor_ <= options_.most_ranks;
    if (has_room && !topology_.contains("expert") && chance(20)) topology_["context"] = 2;
    if (chance(20)) topology_["order"] = pick({"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"});
  }

  void draw_torch() {
    const std::string stepper = pick({"ddp", "fsdp2"});
    plan_["optimizer"] = {{"stepper", stepper},
                          {"bucket_cap_mb", number(1, 25)},
                          {"find_unused", chance(30)},
                          {"static_graph", chance(20)},
                          {"reshard_after_forward", chance(50)},
                          {"clip_grad", chance(70) ? 1.0 : 0.0}};
    if (stepper == "fsdp2" && data_ % 2 == 0 && chance(40)) topology_["replicate"] = 2;
  }

  /// Settings of few ranks, of a slice, or of half an axis.
  void draw_overrides() {
    Json overrides = Json::array();
    const auto size_of = [this](const std::string& axis) {
      return axis == "pipe" ? pipe_ : axis == "data" ? data_ : axis == "tensor" ? tensor_ : pipe_ * data_ * tensor_;
    };
    const std::int64_t number_of = number(0, 2);
    for (std::int64_t i = 0; i < number_of; ++i) {
      const std::string axis = pick({"pipe", "data", "tensor", "rank"});
      Json set;
      switch (random_.below(framework_ == "megatron" && plan_["optimizer"]["per_token_loss"] == true ? 6 : 5)) {
        case 0:
          set["clip_grad"] = chance(50) ? 0.0 : 1.0;
          break;
        case 1:
          set["find_unused"] = chance(50);
          break;
        case 2:
          set["drop_empty"] = chance(50);
          break;
        case 3:
          set["unused_layers"] = {0};
          break;
        case 4:
          set["sparse_layers"] = {0};
          break;
        default:
          set["num_tokens_source"] = number(0, pipe_ - 1);
          break;
      }
      Json where = {{axis, number(0, size_of(axis) - 1)}};
      if (axis != "rank" && axis != "pipe" && chance(30)) where["pipe"] = number(0, pipe_ - 1);
      overrides.push_back({{"where", where}, {"set", set}});
      // The same on a second index: half of an axis, or a pair of ranks.
      if (chance(30)) {
        where[axis] = number(0, size_of(axis) - 1);
        overrides.push_back({{"where", where}, {"set", set}});
      }
    }
    plan_["overrides"] = overrides;
  }

  Random& random_;
  const RandomPlanOptions& options_;
  Json plan_ = Json::object();
  Json topology_{}, schedule_{};
  std::string framework_{}, datatype_{};
  std::int64_t pipe_ = 1, data_ = 1, tensor_ = 1, chunks_ = 1;
};

}  // namespace

std::string random_plan(Random& random, const RandomPlanOptions& options) { return PlanDrawer(random, options).draw(); }

}  // namespace lockstep::testing
