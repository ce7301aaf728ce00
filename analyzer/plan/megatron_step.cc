// The optimizer step of Megatron-Core: gradient buckets, finalize_model_grads, overflow, norm, parameters
// (core/distributed, core/optimizer at d98e8a64).
#include <fmt/format.h>

#include <algorithm>

#include "plan/buckets.h"
#include "plan/step.h"

namespace lockstep::plan {
namespace {

constexpr std::string_view kBufferFile = "distributed/param_and_grad_buffer.py";
constexpr std::string_view kFinalizeFile = "distributed/finalize_model_grads.py";
constexpr std::string_view kOptimizerFile = "optimizer/optimizer.py";
constexpr std::uint64_t kSmallestBucket = 40'000'000;
constexpr std::uint64_t kBucketPerRank = 1'000'000;

class MegatronStep final : public StepProgram {
 public:
  MegatronStep(const Plan& plan, Iteration iteration, RankCalls& calls)
      : plan_(plan), iteration_(iteration), calls_(calls) {
    buckets_ = calls.quantity("number of gradient buckets", "gradient bucket", "");
    embedding_ = calls.quantity("gradient of the shared embedding", "",
                                "let both ends of the pipeline train the shared embedding, or freeze both");
    clip_ = calls.quantity("gradient clipping", "", "set clip_grad alike on every rank", "overrides");
    order_ = calls.quantity("optimizer that steps first (0: dense, 1: experts)", "",
                            "step dense parameters and experts in one order on every rank");
    bucket_site_ =
        calls.site({{kBufferFile, "start_grad_sync"}, {kFinalizeFile, "finalize_model_grads"}}, {buckets_});
    sequence_site_ = calls.site({{kFinalizeFile, "_allreduce_non_tensor_model_parallel_grads"},
                                 {kFinalizeFile, "finalize_model_grads"}},
                                {});
    embedding_site_ =
        calls.site({{kFinalizeFile, "_allreduce_embedding_grad"}, {kFinalizeFile, "finalize_model_grads"}},
                   {embedding_});
    tokens_source_ = calls.quantity("stage that the number of tokens comes from", "",
                                    "broadcast the number of tokens from the last stage on every rank", "overrides");
    tokens_site_ = calls.site({{kFinalizeFile, "finalize_model_grads"}, {"", "num_tokens"}}, {tokens_source_});
    overflow_site_ =
        calls.site({{kOptimizerFile, "_unscale_main_grads_and_check_for_nan"}, {kOptimizerFile, "step"}}, {});
    norm_site_ = calls.site({{"optimizer/clip_grads.py", "get_grad_norm_fp32"}, {kOptimizerFile, "step"}},
                            {clip_, order_});
    gather_site_ = calls.site({{kBufferFile, "start_param_sync"}, {kOptimizerFile, "step_with_ready_grads"}},
                              {buckets_});
  }

  void at(Mark mark, const RankState& state, std::size_t) override {
    if (mark == Mark::kFinalizeModelGrads) finalize_gradients(state);
  }

  void finish(const RankState& state) override {
    if (!finalized_) finalize_gradients(state);
    finalized_ = false;
    step(state);
  }

 private:
  bool distributed() const { return plan_.optimizer.stepper == Stepper::kMegatronDistributed; }
  std::string_view gradient_family(bool experts) const {
    if (experts) return "expt_dp";
    return distributed() && plan_.topology.optimizer_instances > 1 ? "intra_dp_cp" : "dp_cp";
  }

  std::vector<MegatronBucket> buckets_of(const RankState& state, std::size_t chunk, bool experts) const {
    std::vector<MegatronTensor> tensors;
    const auto [first, end] = state.stage.layers[chunk];
    for (const OwnedParameter& owned : state.stage.parameters) {
      if (owned.layer < first || owned.layer >= end || owned.parameter->expert != experts ||
          owned.parameter->frozen)
        continue;
      const std::vector<std::string>& shared = plan_.layers[owned.layer].tied_weights;
      tensors.push_back({owned.parameter->shape.elements(),
                         std::ranges::find(shared, owned.parameter->name) != shared.end()});
    }
    const std::string_view family = gradient_family(experts);
    MegatronBucketOptions options;
    options.distributed_optimizer = distributed();
    options.data_parallel = static_cast<std::uint64_t>(calls_.group_size(family));
    // Stages behind the first, and chunks behind the first, have one bucket each: their gradients come when
    // nothing waits.
    if (plan_.optimizer.overlap_grad_reduce && state.stage_index == 0 && chunk == 0)
      options.bucket_size = plan_.optimizer.bucket_size.value_or(
          std::max(kSmallestBucket, kBucketPerRank * options.data_parallel));
    return megatron_buckets(tensors, options);
  }

  void finalize_gradients(const RankState& state) {
    finalized_ = true;
    std::int64_t number = 0;
    for (const bool experts : {false, true})
      for (std::size_t chunk = 0; chunk < state.stage.layers.size(); ++chunk)
        for (const MegatronBucket& bucket : buckets_of(state, chunk, experts)) {
          ++number;
          const std::string_view family = gradient_family(experts);
          const auto ranks = static_cast<std::uint64_t>(calls_.group_size(family));
          const std::uint64_t elements = bucket.end - bucket.begin;
          calls_.collective(bucket_site_,
                            {.kind = distributed() ? OpKind::kReduceScatter : OpKind::kAllReduce,
                             .family = family,
                             .count = distributed() ? elements / ranks : elements,
                             .datatype = "f32",
                             .redop = "sum",
                             .label = "gradient bucket"});
        }
    calls_.set(buckets_, number);
    reduce_sequence_parallel(state);
    reduce_embedding(state);
    if (!plan_.optimizer.per_token_loss) return;
    const std::int64_t source = state.settings.num_tokens_source.value_or(calls_.group_size("pp") - 1);
    calls_.set(tokens_source_, source);
    calls_.collective(tokens_site_,
                      {.kind = OpKind::kBroadcast, .family = "pp", .count = 1, .datatype = "i32", .root = source});
    calls_.collective(tokens_site_, {.family = "dp_cp", .count = 1, .datatype = "i32", .redop = "sum"});
  }

  // With tensor parallelism the gradients of layer norms are summed over the slices.
  void reduce_sequence_parallel(const RankState& state) {
    if (plan_.topology.tensor == 1) return;
    std::uint64_t elements = 0;
    for (const OwnedParameter& owned : state.stage.parameters)
      if (owned.gradient && owned.parameter->shape.sizes.size() == 1 && !owned.parameter->expert)
        elements += owned.parameter->shape.elements();
    if (elements > 0)
      calls_.collective(sequence_site_,
                        {.family = "tp", .count = elements, .datatype = "f32", .redop = "sum"});
  }

  void reduce_embedding(const RankState& state) {
    const bool at_an_end = state.stage_index == 0 || state.stage_index == plan_.topology.pipe - 1;
    // In a V both ends of the model are on the first rank, and share one weight.
    if (plan_.topology.pipe == 1 || !at_an_end || turns_back(plan_.schedule)) return;
    for (const TiedWeight& tie : state.stage.ties) {
      calls_.set(embedding_, tie.gradient ? 1 : 0,
                 tie.gradient ? ""
                              : fmt::format("on stage {} {}, so its gradient is not reduced",
                                            state.stage_index, tie.why_no_gradient));
      if (tie.gradient)
        calls_.collective(embedding_site_, {.family = "embd",
                                            .count = tie.elements,
                                            .datatype = "f32",
                                            .redop = "sum",
                                            .label = tie.parameter});
    }
  }

  bool has_experts() const {
    return std::ranges::any_of(plan_.layers, [](const Layer& layer) {
      return std::ranges::any_of(layer.parameters, &Parameter::expert);
    });
  }

  /// Families over which norms are reduced, in the order in which this rank steps its optimizers.
  std::vector<std::string_view> statistics_families(const RankState& state) {
    if (distributed()) return {"intra_dist_opt"};
    if (!has_experts()) return {"mp"};
    const auto first = std::ranges::find_if(
        state.stage.parameters, [](const OwnedParameter& owned) { return !owned.parameter->frozen; });
    const bool experts_first =
        plan_.optimizer.chained && first != state.stage.parameters.end() && first->parameter->expert;
    calls_.set(order_, experts_first ? 1 : 0,
               fmt::format("stage {} meets {} first", state.stage_index,
                           experts_first ? "an expert" : "a dense parameter"));
    if (experts_first) return {"tp_ep_pp", "mp"};
    return {"mp", "tp_ep_pp"};
  }

  void step(const RankState& state) {
    const auto families = statistics_families(state);
    if (plan_.optimizer.loss_scale) {
      for (const std::string_view family : families)
        calls_.collective(
            overflow_site_,
            {.family = family, .count = 1, .datatype = "f32", .redop = "max", .label = "overflow"});
      if (iteration_ == Iteration::kSkipped) return;
    }
    const bool clips = state.settings.clip_grad > 0;
    // A chain of optimizers asks for the norm in any case.
    const bool chained = families.size() > 1 || plan_.optimizer.chained;
    calls_.set(clip_, clips || chained ? 1 : 0,
               fmt::format("{} {} has clip_grad {}", axis_name(Axis::kStage), state.stage_index,
                           state.settings.clip_grad));
    if (clips || chained)
      for (const std::string_view family : families)
        calls_.collective(
            norm_site_,
            {.family = family, .count = 1, .datatype = "f32", .redop = "sum", .label = "gradient norm"});
    if (!distributed()) return;
    for (const bool experts : {false, true})
      for (std::size_t chunk = 0; chunk < state.stage.layers.size(); ++chunk)
        for (const MegatronBucket& bucket : buckets_of(state, chunk, experts)) {
          const std::string_view family = gradient_family(experts);
          const auto ranks = static_cast<std::uint64_t>(calls_.group_size(family));
          calls_.collective(gather_site_, {.kind = OpKind::kAllGather,
                                           .family = family,
                                           .count = (bucket.end - bucket.begin) / ranks,
                                           .datatype = plan_.datatype,
                                           .label = "parameters of a bucket"});
        }
  }

  const Plan& plan_;
  Iteration iteration_;
  RankCalls& calls_;
  bool finalized_ = false;
  QuantityIndex buckets_ = 0, embedding_ = 0, clip_ = 0, order_ = 0, tokens_source_ = 0;
  SiteIndex bucket_site_{}, sequence_site_{}, embedding_site_{}, tokens_site_{}, overflow_site_{},
      norm_site_{}, gather_site_{};
};

}  // namespace

std::unique_ptr<StepProgram> megatron_step(const Plan& plan, Iteration iteration, RankCalls& calls) {
  return std::make_unique<MegatronStep>(plan, iteration, calls);
}

}  // namespace lockstep::plan
