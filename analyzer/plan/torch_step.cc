// The gradient synchronisation of torch: DistributedDataParallel (reducer.cpp) and fully_shard
// (_fsdp_param_group.py), and the norm that torchtitan clips by.
#include <fmt/format.h>

#include <algorithm>

#include "plan/buckets.h"
#include "plan/step.h"

namespace lockstep::plan {
namespace {

constexpr std::string_view kReducer = "reducer.cpp";
constexpr std::string_view kFsdpFile = "_fsdp_param_group.py";
constexpr std::uint64_t kMegabyte = 1024 * 1024;

class TorchStep final : public StepProgram {
 public:
  TorchStep(const Plan& plan, Iteration iteration, RankCalls& calls)
      : plan_(plan), iteration_(iteration), calls_(calls) {
    find_unused_ = calls.quantity("find_unused_parameters", "",
                                  "set find_unused_parameters alike on every rank", "overrides");
    launched_ =
        calls.quantity("number of buckets whose gradients all come", "bucket whose gradients all come",
                       "let every rank use the same parameters, or set find_unused_parameters");
    with_gradient_ = calls.quantity(
        "number of parameter groups with a gradient", "parameter group that has a gradient",
        "let every rank use the same parameters in each step (add zero times their output to the loss)");
    clip_ = calls.quantity("gradient clipping", "", "set clip_grad alike on every rank", "overrides");
    bucket_site_ = calls.site({{kReducer, "all_reduce_bucket"}, {kReducer, "mark_bucket_ready"}},
                              {launched_, find_unused_});
    rebuild_site_ =
        calls.site({{kReducer, "sync_bucket_indices"}, {kReducer, "rebuild_buckets"}}, {find_unused_});
    bitmap_site_ = calls.site({{kReducer, "all_reduce_local_used_map"}, {kReducer, "finalize_backward"}},
                              {find_unused_});
    unshard_site_ = calls.site({{kFsdpFile, "unshard"}, {kFsdpFile, "pre_forward"}}, {});
    scatter_site_ =
        calls.site({{kFsdpFile, "foreach_reduce"}, {kFsdpFile, "post_backward"}}, {with_gradient_});
    replicate_site_ = calls.site({{kFsdpFile, "all_reduce"}, {kFsdpFile, "post_backward"}}, {with_gradient_});
    norm_site_ =
        calls.site({{"distributed/utils.py", "clip_grad_norm_"}, {"train.py", "train_step"}}, {clip_});
  }

  void at(Mark mark, const RankState& state, std::size_t chunk) override {
    if (!sharded()) return;
    if (mark == Mark::kUnshard) {
      marked_ = true;
      unshard(state, chunk, false);
    } else if (mark == Mark::kReduceGrad) {
      reduce_layers(state, chunk);
    }
  }

  void forward(const RankState& state, std::size_t chunk) override {
    if (sharded() && !marked_) unshard(state, chunk, false);
  }

  void backward(const RankState& state, std::size_t chunk, bool last) override {
    if (!sharded()) return;
    if (!marked_ && plan_.optimizer.reshard_after_forward) unshard(state, chunk, true);
    if (last) reduce_layers(state, chunk);
  }

  void finish(const RankState& state) override {
    if (!sharded()) reduce_ddp(state);
    marked_ = false;
    groups_reduced_ = 0;
    clip(state);
  }

 private:
  bool sharded() const { return plan_.optimizer.stepper == Stepper::kFsdp2; }

  DdpOptions options(const RankState& state) const {
    DdpOptions options;
    options.cap_bytes = static_cast<std::uint64_t>(plan_.optimizer.bucket_cap_mb) * kMegabyte;
    if (plan_.optimizer.cap_of_first_bucket) options.first_bucket_bytes = options.cap_bytes;
    options.find_unused = state.settings.find_unused;
    options.static_graph = plan_.optimizer.static_graph;
    return options;
  }

  /// Number of the iteration whose buckets are used, counted from 0.
  int iteration_number() const {
    switch (iteration_) {
      case Iteration::kFirst:
        return 0;
      case Iteration::kSecond:
        return plan_.optimizer.static_graph ? 2 : 1;
      case Iteration::kSteady:
      case Iteration::kSkipped:
        return 3;
    }
    return 3;
  }

  void reduce_ddp(const RankState& state) {
    std::vector<DdpTensor> tensors;
    std::vector<std::uint64_t> elements;
    std::vector<bool> ready;
    for (const OwnedParameter& owned : state.stage.parameters) {
      if (owned.parameter->frozen) continue;
      elements.push_back(owned.parameter->shape.elements());
      tensors.push_back({elements.back() * element_bytes(plan_.datatype).value_or(4), 0});
      ready.push_back(owned.gradient);
    }
    const DdpOptions ddp = options(state);
    const auto rebuilt = ddp_rebuild_iteration(ddp);
    calls_.set(find_unused_, ddp.find_unused ? 1 : 0,
               fmt::format("{} has find_unused_parameters={}", kThisRank, ddp.find_unused));
    if (rebuilt && iteration_number() == *rebuilt) {
      calls_.collective(rebuild_site_, {.kind = OpKind::kBroadcast,
                                        .family = "dp",
                                        .count = elements.size() + 1,
                                        .datatype = "i32",
                                        .root = 0,
                                        .label = "bucket indices"});
    }
    std::vector<std::size_t> order(elements.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
    const auto buckets = ddp_buckets(tensors, order, ddp, iteration_number());
    if (rebuilt && iteration_number() == *rebuilt)
      calls_.collective(rebuild_site_, {.kind = OpKind::kBroadcast,
                                        .family = "dp",
                                        .count = buckets.size(),
                                        .datatype = "i32",
                                        .root = 0,
                                        .label = "bucket sizes"});
    std::int64_t launched = 0;
    for (const DdpBucket& bucket : buckets) {
      const bool all_come =
          std::ranges::all_of(bucket.tensors, [&](std::size_t tensor) { return ready[tensor]; });
      if (!ddp.find_unused && !all_come)
        break;  // buckets are launched in order: later ones wait for this one
      ++launched;
      std::uint64_t count = 0;
      for (const std::size_t tensor : bucket.tensors) count += elements[tensor];
      calls_.collective(bucket_site_, {.family = "dp",
                                       .count = count,
                                       .datatype = plan_.datatype,
                                       .redop = "sum",
                                       .label = fmt::format("bucket {} of {}", launched, buckets.size())});
    }
    calls_.set(
        launched_, launched,
        launched < std::ssize(buckets)
            ? fmt::format("{} does not use all parameters of bucket {}", kThisRank, launched + 1)
            : "");
    if (ddp.find_unused && !ddp.static_graph)
      calls_.collective(bitmap_site_, {.family = "dp",
                                       .count = elements.size(),
                                       .datatype = "i32",
                                       .redop = "sum",
                                       .label = "used parameters"});
  }

  struct LayerElements {
    std::size_t layer = 0;
    std::uint64_t all = 0;
    std::uint64_t with_gradient = 0;
  };
  /// Of one chunk. Padded to what every rank holds of the layer, times the ranks.
  std::vector<LayerElements> layers(const RankState& state, std::size_t chunk) const {
    std::vector<LayerElements> list;
    const auto ranks = static_cast<std::uint64_t>(calls_.group_size("fsdp"));
    const auto [first, end] = state.stage.layers[chunk];
    for (const OwnedParameter& owned : state.stage.parameters) {
      if (owned.layer < first || owned.layer >= end) continue;
      if (list.empty() || list.back().layer != owned.layer) list.push_back({owned.layer, 0, 0});
      const auto& sizes = owned.parameter->shape.sizes;
      const std::uint64_t rows =
          sizes.empty() ? 1 : std::max<std::uint64_t>(1, static_cast<std::uint64_t>(sizes[0]));
      const std::uint64_t held = (rows + ranks - 1) / ranks * (owned.parameter->shape.elements() / rows);
      list.back().all += held;
      if (owned.gradient) list.back().with_gradient += held;
    }
    return list;
  }

  void unshard(const RankState& state, std::size_t chunk, bool reverse) {
    if (calls_.group_size("fsdp") == 1) return;
    auto list = layers(state, chunk);
    if (reverse) std::ranges::reverse(list);
    for (const LayerElements& layer : list)
      calls_.collective(unshard_site_, {.kind = OpKind::kAllGather,
                                        .family = "fsdp",
                                        .count = layer.all,
                                        .datatype = plan_.datatype,
                                        .label = fmt::format("layer {}", layer.layer)});
  }

  void reduce_layers(const RankState& state, std::size_t chunk) {
    auto list = layers(state, chunk);
    std::ranges::reverse(list);
    std::string why;
    for (const LayerElements& layer : list) {
      if (layer.with_gradient == 0) {
        why = fmt::format("on {} no parameter of layer {} ({}) has a gradient", kThisRank,
                          layer.layer, display_name(plan_.layers[layer.layer]));
        continue;
      }
      ++groups_reduced_;
      const std::string label = fmt::format("layer {}", layer.layer);
      if (calls_.group_size("fsdp") > 1)
        calls_.collective(scatter_site_, {.kind = OpKind::kReduceScatter,
                                          .family = "fsdp",
                                          .count = layer.with_gradient,
                                          .datatype = plan_.datatype,
                                          .redop = "sum",
                                          .label = label});
      if (plan_.topology.replicate > 1)
        calls_.collective(replicate_site_, {.family = "dp_replicate",
                                            .count = layer.with_gradient,
                                            .datatype = plan_.datatype,
                                            .redop = "sum",
                                            .label = label});
    }
    calls_.set(with_gradient_, groups_reduced_, why);
  }

  void clip(const RankState& state) {
    const bool clips = state.settings.clip_grad > 0;
    calls_.set(clip_, clips ? 1 : 0,
               fmt::format("{} has clip_grad {}", kThisRank, state.settings.clip_grad));
    if (!clips) return;
    const bool any = std::ranges::any_of(state.stage.parameters, &OwnedParameter::gradient);
    // Without gradients the norm is a plain zero: nothing is reduced over the mesh of the parameters.
    if (sharded() && any)
      for (const std::string_view family : {"fsdp", "tp"})
        if (calls_.group_size(family) > 1)
          calls_.collective(
              norm_site_,
              {.family = family, .count = 1, .datatype = "f32", .redop = "sum", .label = "gradient norm"});
    if (plan_.topology.pipe > 1)
      calls_.collective(
          norm_site_,
          {.family = "pp", .count = 1, .datatype = "f32", .redop = "sum", .label = "gradient norm"});
  }

  const Plan& plan_;
  Iteration iteration_;
  RankCalls& calls_;
  bool marked_ = false;
  std::int64_t groups_reduced_ = 0;  ///< in this iteration
  QuantityIndex find_unused_ = 0, launched_ = 0, with_gradient_ = 0, clip_ = 0;
  SiteIndex bucket_site_{}, rebuild_site_{}, bitmap_site_{}, unshard_site_{}, scatter_site_{},
      replicate_site_{}, norm_site_{};
};

}  // namespace

std::unique_ptr<StepProgram> torch_step(const Plan& plan, Iteration iteration, RankCalls& calls) {
  return std::make_unique<TorchStep>(plan, iteration, calls);
}

}  // namespace lockstep::plan
