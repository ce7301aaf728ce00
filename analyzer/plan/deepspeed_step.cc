// The optimizer step of DeepSpeed: tied gradients, gradient buckets, overflow, norm, parameters, loss
// (runtime/pipe/engine.py, runtime/zero/stage_1_and_2.py, runtime/fp16, runtime/bf16_optimizer.py).
#include <fmt/format.h>

#include <algorithm>

#include "plan/buckets.h"
#include "plan/step.h"
#include "plan/versions.h"

namespace lockstep::plan {
namespace {

constexpr std::string_view kFixGroups =
    "sum the squared norms over all optimizer groups first and reduce once after the loop, or keep empty "
    "groups on every stage";
constexpr std::string_view kEngine = "pipe/engine.py";
constexpr std::string_view kZeroFile = "zero/stage_1_and_2.py";

class DeepSpeedStep final : public StepProgram {
 public:
  DeepSpeedStep(const Plan& plan, Iteration iteration, RankCalls& calls)
      : plan_(plan), iteration_(iteration), calls_(calls), behaviour_(deepspeed_behaviour(plan.version)) {
    groups_ =
        calls.quantity("number of optimizer groups", "optimizer group", std::string(kFixGroups), "partition");
    ties_ = calls.quantity(
        "number of tied weights with a gradient", "tied weight that has a gradient",
        "let every copy of a tied weight take a gradient, or none; reduce zeros where there is none");
    buckets_ = calls.quantity("number of gradient buckets", "gradient bucket", "");
    sparse_ = calls.quantity(
        "number of sparse gradients", "sparse gradient",
        "name the modules with sparse gradients in the configuration, so that every rank treats them alike",
        "overrides");
    experts_ = calls.quantity("presence of MoE layers", "",
                              "decide by what the whole model has, not by the layers of the stage");
    tied_site_ = calls.site(
        {{"pipe/module.py", "allreduce_tied_weight_gradients"}, {kEngine, "_exec_reduce_tied_grads"}},
        {ties_});
    bucket_site_ =
        calls.site({{zero() ? kZeroFile : "engine.py", "allreduce_bucket"}, {kEngine, "_exec_reduce_grads"}},
                   {buckets_, sparse_});
    sparse_site_ =
        calls.site({{"engine.py", "sparse_allreduce_bucket"}, {kEngine, "_exec_reduce_grads"}}, {sparse_});
    expert_site_ =
        calls.site({{"engine.py", "_reduce_expert_gradients"}, {kEngine, "_exec_reduce_grads"}}, {experts_});
    overflow_site_ =
        calls.site({{zero() ? kZeroFile : "utils.py", "has_overflow"}, {optimizer_file(), "step"}}, {});
    const std::vector<QuantityIndex> norm_controls =
        per_group() ? std::vector{groups_} : std::vector<QuantityIndex>{};
    norm_site_ = calls.site({{norm_file(), norm_function()}, {optimizer_file(), "step"}}, norm_controls);
    moe_norm_site_ =
        calls.site({{"utils.py", "get_norm_with_moe_layers"}, {optimizer_file(), "step"}}, {experts_});
    scaled_norm_site_ =
        calls.site({{"fp16/fused_optimizer.py", "step"}, {"engine.py", "_take_model_step"}}, {});
    gather_site_ = calls.site({{kZeroFile, "all_gather_dp_groups"}, {optimizer_file(), "step"}}, {groups_});
    loss_site_ = calls.site({{kEngine, "_aggregate_total_loss"}, {kEngine, "train_batch"}}, {});
    loss_data_site_ = calls.site(
        {{kEngine, "_aggregate_total_loss"}, {kEngine, "train_batch"}, {"", "average over data"}}, {});
    if (inference()) {
      loss_site_ = calls.site({{kEngine, "_bcast_pipe_scalar"}, {kEngine, "eval_batch"}}, {});
      loss_data_site_ = calls.site({{kEngine, "_reduce_outputs"}, {kEngine, "eval_batch"}}, {});
    }
    eval_site_ = calls.site({{kEngine, "eval_batch"}}, {});
    fetch_site_ = calls.site({{"zero/partitioned_param_coordinator.py", "fetch_sub_module"}}, {});
    scatter_site_ = calls.site({{"zero/stage3.py", "reduce_scatter_coalesced"}}, {});
  }

  void at(Mark mark, const RankState& state, std::size_t) override {
    switch (mark) {
      case Mark::kReduceTiedGrads:
        return reduce_tied(state);
      case Mark::kReduceGrads:
        return reduce_gradients(state);
      case Mark::kOptimizerStep:
        return step(state);
      case Mark::kNone:
      case Mark::kNoSyncEnter:
      case Mark::kNoSyncExit:
      case Mark::kDeviceSync:
      case Mark::kFinalizeModelGrads:
      case Mark::kUnshard:
      case Mark::kReshard:
      case Mark::kReduceGrad:
      case Mark::kPostValidation:
        return;
    }
  }

  void start(const RankState&) override {
    // Of all ranks, so that one evaluation does not run into the next.
    if (inference()) calls_.collective(eval_site_, {.kind = OpKind::kBarrier, .family = "world"});
    has_second_copies_ = false;
  }

  void forward(const RankState& state, std::size_t) override {
    if (plan_.optimizer.stepper != Stepper::kZero3) return;
    fetch_layers(state, false);
    has_second_copies_ = true;
  }

  void backward(const RankState& state, std::size_t, bool last_micro_batch) override {
    if (plan_.optimizer.stepper == Stepper::kZero3) {
      fetch_layers(state, true);
      reduce_scatter_layers(state);
    }
    if (!last_micro_batch || pipelined()) return;
    if (plan_.optimizer.stepper != Stepper::kZero3) reduce_gradients(state);
    step(state);
  }

  void finish(const RankState& state) override {
    if (pipelined()) aggregate_loss(state);
  }

 private:
  bool zero() const { return plan_.optimizer.stepper == Stepper::kZero; }
  bool pipelined() const { return plan_.schedule.name != "none"; }
  bool inference() const { return plan_.schedule.name == "inference"; }
  bool flat() const { return plan_.optimizer.reduction != GradientReduction::kBuckets; }
  bool per_group() const { return plan_.optimizer.norm == NormReduction::kPerGroup; }
  std::uint64_t data_size() const {
    return static_cast<std::uint64_t>(calls_.group_size("data"));
  }

  std::string_view optimizer_file() const {
    switch (plan_.optimizer.stepper) {
      case Stepper::kZero:
        return kZeroFile;
      case Stepper::kZero3:
        return "zero/stage3.py";
      case Stepper::kUnfused:
        return "fp16/unfused_optimizer.py";
      case Stepper::kBf16:
        return "bf16_optimizer.py";
      default:
        return "fp16/fused_optimizer.py";
    }
  }
  std::string_view norm_file() const {
    return zero() || plan_.optimizer.stepper == Stepper::kZero3 ? optimizer_file() : "utils.py";
  }
  std::string_view norm_function() const {
    switch (plan_.optimizer.stepper) {
      case Stepper::kZero:
      case Stepper::kZero3:
        return "get_grad_norm_direct";
      case Stepper::kUnfused:
        return "get_weight_norm";
      case Stepper::kBf16:
        return "get_global_norm_of_tensors";
      default:
        return "get_grad_norm";
    }
  }

  void reduce_tied(const RankState& state) {
    std::int64_t reduced = 0;
    std::string why;
    // By key, in whatever order the stage's layers stand: all stages walk through the keys of the whole model.
    std::vector<TiedWeight> ties = state.stage.ties;
    std::ranges::stable_sort(ties, {}, &TiedWeight::key);
    for (const TiedWeight& tie : ties) {
      if (!tie.gradient) {
        why = fmt::format("on stage {} {}, so it has no gradient to reduce", state.stage_index,
                          tie.why_no_gradient);
        continue;
      }
      ++reduced;
      calls_.collective(tied_site_, {.family = "tied." + tie.key,
                                     .count = tie.elements,
                                     .datatype = gradient_type(),
                                     .redop = "sum",
                                     .label = fmt::format("tied weight {}", tie.parameter)});
    }
    calls_.set(ties_, reduced, why);
  }

  std::string_view gradient_type() const {
    if (!plan_.optimizer.gradient_datatype.empty()) return plan_.optimizer.gradient_datatype;
    return plan_.optimizer.stepper == Stepper::kBf16 ? std::string_view("f32")
                                                     : std::string_view(plan_.datatype);
  }

  /// Elements in the order in which they are reduced: by optimizer group with a pipeline, else as backward
  /// reaches them.
  std::vector<std::uint64_t> gradients(const RankState& state, bool of_experts) const {
    std::vector<std::uint64_t> elements;
    const auto add = [&](const OwnedParameter& owned) {
      const bool sparse = owned.parameter->sparse || is_sparse(state, owned);
      // Without ZeRO the engine puts zeros where a gradient is missing.
      const bool comes = zero() ? owned.gradient : !owned.parameter->frozen;
      if (comes && owned.parameter->expert == of_experts && !(sparse && !zero()))
        elements.push_back(owned.parameter->shape.elements());
    };
    if (zero() && pipelined()) {
      for (const OptimizerGroup& group : state.stage.groups)
        for (const OwnedParameter& owned : group.parameters) add(owned);
    } else {
      for (const OwnedParameter& owned : state.stage.parameters) add(owned);
      if (zero()) std::ranges::reverse(elements);
    }
    return elements;
  }

  static bool is_sparse(const RankState& state, const OwnedParameter& owned) {
    return std::ranges::find(state.settings.sparse_layers, static_cast<std::int64_t>(owned.layer)) !=
           state.settings.sparse_layers.end();
  }

  void reduce_sparse(const RankState& state) {
    std::int64_t number = 0;
    for (const OwnedParameter& owned : state.stage.parameters) {
      if (!owned.parameter->sparse && !is_sparse(state, owned)) continue;
      ++number;
      const std::uint64_t rows = owned.parameter->shape.sizes.empty()
                                     ? 1
                                     : static_cast<std::uint64_t>(owned.parameter->shape.sizes[0]);
      for (const auto& [count, datatype] : {std::pair<std::uint64_t, std::string_view>{1, "i64"},
                                            {rows, "i64"},
                                            {1, "i64"},
                                            {owned.parameter->shape.elements(), plan_.datatype}})
        calls_.collective(sparse_site_,
                          {.kind = OpKind::kAllGather,
                           .family = "data",
                           .count = count,
                           .datatype = datatype,
                           .label = fmt::format("sparse gradient of {}", owned.parameter->name)});
    }
    calls_.set(sparse_, number,
               number > 0 ? fmt::format("{} has {} sparse gradient{}", kThisRank, number,
                                        number == 1 ? "" : "s")
                          : "");
  }

  void reduce_gradients(const RankState& state) {
    if (flat()) return reduce_flat_groups(state);
    if (!zero()) reduce_sparse(state);
    const auto elements = gradients(state, false);
    const auto buckets = zero() ? zero_reduce_buckets(elements, plan_.optimizer.reduce_bucket)
                                : zero0_buckets(elements, plan_.optimizer.reduce_bucket);
    calls_.set(buckets_, static_cast<std::int64_t>(buckets.size()));
    for (const std::uint64_t count : buckets)
      calls_.collective(bucket_site_, {.family = "data",
                                       .count = count,
                                       .datatype = gradient_type(),
                                       .redop = "sum",
                                       .label = "ReduceGrads"});
    calls_.set(experts_, state.stage.experts ? 1 : 0,
               fmt::format("stage {} has {}MoE layers", state.stage_index, state.stage.experts ? "" : "no "));
    for (const std::uint64_t count : zero0_buckets(gradients(state, true), plan_.optimizer.reduce_bucket))
      calls_.collective(
          expert_site_,
          {.family = "expert_data", .count = count, .datatype = gradient_type(), .redop = "sum"});
  }

  /// Each group that has elements, padded so that every replica keeps an equal part.
  void reduce_flat_groups(const RankState& state) {
    const bool scatter = plan_.optimizer.reduction == GradientReduction::kFlatReduceScatter;
    std::int64_t number = 0;
    for (const OptimizerGroup& group : state.stage.groups) {
      if (group.elements() == 0) continue;
      ++number;
      const std::uint64_t padded = padded_elements(group);
      calls_.collective(bucket_site_, {.kind = scatter ? OpKind::kReduceScatter : OpKind::kAllReduce,
                                       .family = "data",
                                       .count = scatter ? padded / data_size() : padded,
                                       .datatype = gradient_type(),
                                       .redop = "sum",
                                       .label = fmt::format("gradients of the {} group", group.name)});
    }
    calls_.set(buckets_, number);
  }

  std::uint64_t padded_elements(const OptimizerGroup& group) const {
    return zero_padded_elements(group.elements(), data_size(), plan_.optimizer.part_alignment);
  }

  void model_reduce(SiteIndex site, std::string_view datatype, std::string_view redop,
                    std::string_view label, std::uint64_t count = 1) {
    if (behaviour_.skips_lone_model_group && calls_.group_size("model") == 1) return;
    calls_.collective(
        site, {.family = "model", .count = count, .datatype = datatype, .redop = redop, .label = label});
  }

  void step(const RankState& state) {
    const OptimizerPlan& optimizer = plan_.optimizer;
    const bool partitioned = zero() || optimizer.stepper == Stepper::kZero3;
    if (optimizer.loss_scale && optimizer.stepper != Stepper::kBf16 &&
        optimizer.stepper != Stepper::kEngine) {
      if (partitioned)
        calls_.collective(
            overflow_site_,
            {.family = "data", .count = 1, .datatype = "u8", .redop = "max", .label = "overflow"});
      model_reduce(overflow_site_, "u8", "max", "overflow");
      if (iteration_ == Iteration::kSkipped) return;
    }
    reduce_norms(state, partitioned);
    if (optimizer.stepper == Stepper::kFused)
      calls_.collective(
          scaled_norm_site_,
          {.family = "data", .count = 1, .datatype = "f32", .redop = "sum", .label = "scaled norm"});
    if (zero() || optimizer.stepper == Stepper::kBf16) gather_parameters(state);
  }

  void reduce_norms(const RankState& state, bool partitioned) {
    if (plan_.optimizer.stepper == Stepper::kEngine) return;
    const std::size_t number = state.stage.groups.size();
    calls_.set(groups_, static_cast<std::int64_t>(number), state.stage.why_dropped);
    const std::size_t rounds = per_group() ? number : 1;
    const std::uint64_t elements = plan_.optimizer.norm == NormReduction::kVector ? number : 1;
    for (std::size_t i = 0; i < rounds; ++i) {
      const std::string label = per_group() ? fmt::format("optimizer group {} of {} ({})", i + 1, number,
                                                          state.stage.groups[i].name)
                                            : std::string("norm of all groups");
      if (partitioned)
        calls_.collective(norm_site_,
                          {.family = "data",
                           .count = elements,
                           .datatype = plan_.optimizer.norm_datatype,
                           .redop = "sum",
                           .label = label});
      model_reduce(norm_site_, plan_.optimizer.norm_datatype, "sum", label, elements);
    }
    const bool asks_for_experts =
        plan_.optimizer.stepper == Stepper::kBf16 || plan_.optimizer.stepper == Stepper::kUnfused;
    if (asks_for_experts && state.stage.experts) {
      calls_.collective(
          moe_norm_site_,
          {.family = "expert", .count = 1, .datatype = "f32", .redop = "sum", .label = "expert norm"});
      calls_.collective(
          moe_norm_site_,
          {.family = "pipe", .count = 1, .datatype = "f32", .redop = "sum", .label = "expert norm"});
    }
  }

  void gather_parameters(const RankState& state) {
    calls_.set(groups_, static_cast<std::int64_t>(state.stage.groups.size()), state.stage.why_dropped);
    const std::uint64_t ranks = data_size();
    if (ranks == 1 && behaviour_.skips_lone_allgather) return;
    for (const OptimizerGroup& group : state.stage.groups) {
      if (flat() && group.elements() == 0) continue;
      const std::uint64_t partition = padded_elements(group) / ranks;
      const std::uint64_t shards =
          std::max<std::uint64_t>(1, partition * ranks / plan_.optimizer.allgather_bucket);
      std::uint64_t shard = partition / shards;
      shard -= shard % 2;
      for (std::uint64_t i = 0; i < shards; ++i)
        calls_.collective(gather_site_, {.kind = OpKind::kAllGather,
                                         .family = "data",
                                         .count = i + 1 == shards ? partition - i * shard : shard,
                                         .datatype = plan_.datatype,
                                         .label = fmt::format("parameters of the {} group", group.name)});
    }
  }

  /// Gradients and parameters of a layer travel together. What has a second copy is gathered among those who share it,
  /// and first: the copy is made when a layer is let go, and void after the step where the parameter is trained.
  void fetch_layers(const RankState& state, bool reverse) {
    std::vector<LayerElements> layers = elements_by_layer(state);
    if (reverse) std::ranges::reverse(layers);
    const auto gather = [&](std::size_t layer, std::string_view family, std::uint64_t count) {
      if (count == 0) return;
      calls_.collective(fetch_site_, {.kind = OpKind::kAllGather,
                                      .family = family,
                                      .count = count,
                                      .datatype = plan_.datatype,
                                      .label = fmt::format("layer {}", layer)});
    };
    const bool second = plan_.optimizer.hpz > 1;
    const std::uint64_t copies = data_size() / static_cast<std::uint64_t>(plan_.optimizer.hpz);
    for (const LayerElements& of : layers) {
      const bool frozen_too = has_second_copies_ || iteration_ != Iteration::kFirst;
      std::uint64_t local = second && frozen_too ? of.frozen : 0;
      if (second && has_second_copies_) local += of.trained;
      gather(of.layer, "hpz", local * copies);
      gather(of.layer, "data", of.trained + of.frozen - local);
    }
  }
  void reduce_scatter_layers(const RankState& state) {
    auto layers = elements_by_layer(state);
    std::ranges::reverse(layers);
    for (const auto& [layer, trained, frozen, elements] : layers) {
      if (elements == 0) continue;
      calls_.collective(scatter_site_, {.kind = OpKind::kReduceScatter,
                                        .family = "data",
                                        .count = elements,
                                        .datatype = plan_.datatype,
                                        .redop = "sum",
                                        .label = fmt::format("layer {}", layer)});
    }
  }
  /// Elements of one replica's part.
  struct LayerElements {
    std::size_t layer = 0;
    std::uint64_t trained = 0, frozen = 0, with_gradient = 0;
  };
  std::vector<LayerElements> elements_by_layer(const RankState& state) const {
    std::vector<LayerElements> layers;
    const std::uint64_t ranks = data_size();
    for (const OwnedParameter& owned : state.stage.parameters) {
      if (layers.empty() || layers.back().layer != owned.layer) layers.push_back({owned.layer});
      LayerElements& of = layers.back();
      const std::uint64_t part = (owned.parameter->shape.elements() + ranks - 1) / ranks;
      (owned.parameter->frozen ? of.frozen : of.trained) += part;
      if (owned.gradient) of.with_gradient += part;
    }
    return layers;
  }

  void aggregate_loss(const RankState& state) {
    const TensorShape& loss = plan_.schedule.loss;
    if (state.stage_index == plan_.topology.pipe - 1 && data_size() > 1)
      calls_.collective(loss_data_site_,
                        {.family = "data", .count = 1, .datatype = loss.datatype, .redop = "sum", .label = "loss"});
    calls_.collective(loss_site_, {.kind = OpKind::kBroadcast,
                                   .family = "pipe",
                                   .count = loss.elements(),
                                   .datatype = loss.datatype,
                                   .root = calls_.group_size("pipe") - 1,
                                   .label = "loss"});
  }

  const Plan& plan_;
  Iteration iteration_;
  RankCalls& calls_;
  DeepSpeedBehaviour behaviour_;
  bool has_second_copies_ = false;  ///< of trained parameters, in this iteration
  QuantityIndex groups_ = 0, ties_ = 0, buckets_ = 0, sparse_ = 0, experts_ = 0;
  SiteIndex tied_site_{}, bucket_site_{}, sparse_site_{}, expert_site_{}, overflow_site_{}, norm_site_{},
      moe_norm_site_{}, scaled_norm_site_{}, gather_site_{}, loss_site_{}, loss_data_site_{}, eval_site_{}, fetch_site_{},
      scatter_site_{};
};

}  // namespace

std::unique_ptr<StepProgram> deepspeed_step(const Plan& plan, Iteration iteration, RankCalls& calls) {
  return std::make_unique<DeepSpeedStep>(plan, iteration, calls);
}

}  // namespace lockstep::plan
