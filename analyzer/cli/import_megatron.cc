#include "cli/import_megatron.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/megatron_layers.h"
#include "plan/expansion.h"
#include "plan/read_plan.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostRanks = plan::kMaxPlanRanks;
constexpr std::int64_t kMostLayers = 10'000;

/// Arguments that change which calls are made or between whom, and that are not taken over.
constexpr std::string_view kNotTaken[] = {
    "mtp_num_layers", "standalone_embedding_stage", "pipeline_model_parallel_split_rank", "encoder_num_layers",
    "encoder_tensor_model_parallel_size", "encoder_pipeline_model_parallel_size", "hierarchical_context_parallel_sizes",
    "hybrid_context_parallel", "tensor_parallel_num_weight_shards", "expert_tensor_parallel_num_weight_shards",
    "gtp_weight_remat_size", "use_torch_fsdp2", "use_megatron_fsdp", "use_custom_fsdp", "data_parallel_sharding_strategy",
    "ddp_num_buckets", "ddp_pad_buckets_for_high_nccl_busbw", "overlap_param_gather_with_optimizer_step",
    "overlap_moe_expert_parallel_comm", "delay_wgrad_compute", "rampup_batch_size", "hybrid_override_pattern",
    "hybrid_layer_pattern", "is_hybrid_model", "multi_latent_attention", "moe_shared_expert_intermediate_size", "qk_layernorm",
    "heterogeneous_layers_config_path", "spec", "enable_zero_bubble", "zero_bubble_v_schedule", "enable_1f1b_v",
    "num_seq_splits", "optimizer_cpu_offload", "use_layer_wise_distributed_optimizer", "freeze_lm", "freeze_vit"};

/// Without virtual stages they decide nothing.
constexpr std::string_view kOfInterleaving[] = {"microbatch_group_size_per_virtual_pipeline_stage", "microbatch_group_size_per_vp_stage"};

class Importer {
 public:
  Importer(MegatronArguments& arguments, std::int64_t world, const std::string& version)
      : arguments_(arguments), world_(world), version_(version) {}

  Result<MegatronImport> import() {
    read_sizes();
    if (arguments_.error()) return *arguments_.error();
    read_chunks();
    if (arguments_.error()) return *arguments_.error();
    const MegatronLayers layers = megatron_layers(arguments_, {tensor_, context_, expert_, expert_tensor_}, assumed_);
    if (arguments_.error()) return *arguments_.error();
    const std::vector<std::int64_t> parts = cut(layers.transformer_layers);
    const std::int64_t micro_batches = micro_batches_of_a_step();
    Json plan = plan_of(layers, parts, micro_batches);
    if (arguments_.error()) return *arguments_.error();
    for (const std::string_view name : kNotTaken)
      if (const std::string value = arguments_.text(name, "false"); value != "false" && value != "False" && value != "None" && value != "0")
        assumed_.push_back(fmt::format("{} is not in the plan, though it changes which calls are made", arguments_.place(name)));
    if (const std::string optimizer = arguments_.text("optimizer", "adam"); optimizer != "adam" && optimizer != "sgd")
      assumed_.push_back(fmt::format("{}: '{}' is not in the plan, which steps as with adam", arguments_.place("optimizer"),
                                     optimizer.substr(0, 80)));
    for (const std::string_view name : kOfInterleaving) static_cast<void>(arguments_.has(name));
    note_unknown();
    return checked(plan.dump(1, ' ', false, Json::error_handler_t::replace) + '\n', micro_batches);
  }

 private:
  /// An argument that nobody asked for decides nothing, unless its name says that it cuts the model: one of another release,
  /// or misspelt.
  void note_unknown() {
    constexpr std::string_view kTelling[] = {"parallel", "pipeline", "virtual_stage", "fsdp", "distributed_optimizer"};
    constexpr std::string_view kHarmless[] = {"ckpt_", "no_ckpt_", "async_tensor_model", "no_async_tensor_model", "tp_comm_", "disable_tp_comm_"};
    for (const std::string& name : arguments_.unasked()) {
      const auto contains = [&](std::string_view part) { return name.find(part) != std::string::npos; };
      const auto begins = [&](std::string_view part) { return name.starts_with(part); };
      if (std::ranges::any_of(kTelling, contains) && std::ranges::none_of(kHarmless, begins))
        assumed_.push_back(fmt::format("{} is not known, and not in the plan", arguments_.place(name)));
    }
  }

  std::int64_t degree(std::string_view name, std::int64_t otherwise = 1) {
    return arguments_.integer(name, otherwise, 1, kMostRanks);
  }

  void read_sizes() {
    tensor_ = degree("tensor_model_parallel_size");
    pipe_ = degree("pipeline_model_parallel_size");
    context_ = degree("context_parallel_size");
    expert_ = degree("expert_model_parallel_size");
    expert_tensor_ = degree("expert_tensor_parallel_size", tensor_);
    if (world_ == 0) world_ = arguments_.integer("world_size", 0, 1, kMostRanks);
    if (world_ == 0 && arguments_.has("nproc_per_node"))
      world_ = arguments_.integer("nproc_per_node", 1, 1, kMostRanks) * arguments_.integer("nnodes", 1, 1, kMostRanks);
    if (world_ == 0)
      return arguments_.fail("world_size", "is missing, and so are nproc-per-node and nnodes: give --world");
    const std::int64_t model = tensor_ * pipe_;
    if (model > kMostRanks || model * context_ > kMostRanks || world_ > kMostRanks)
      return arguments_.fail("world_size", fmt::format("more than {} ranks", kMostRanks));
    if (world_ % (model * context_) != 0)
      return arguments_.fail("world_size", fmt::format("{} ranks are not divisible by tensor {} x pipeline {} x context {} = {}", world_,
                                                       tensor_, pipe_, context_, model * context_));
    data_ = world_ / (model * context_);
    for (const std::string_view removed : {"model_parallel_size", "batch_size"})
      if (arguments_.has(removed)) arguments_.fail(removed, "is no argument of Megatron any more");
  }

  /// Model chunks of a rank, and what may not be combined with them.
  void read_chunks() {
    layers_ = arguments_.integer("num_layers", 0, 1, kMostLayers);
    if (layers_ == 0) return arguments_.fail("num_layers", "is missing");
    first_ = arguments_.integer("decoder_first_pipeline_num_layers", 0, 1, kMostLayers);
    last_ = arguments_.integer("decoder_last_pipeline_num_layers", 0, 1, kMostLayers);
    counts_embedding_ = arguments_.flag("account_for_embedding_in_pipeline_split");
    counts_loss_ = arguments_.flag("account_for_loss_in_pipeline_split");
    if (const std::string layout = arguments_.text(kLayout, "None"); layout != "None") read_layout(layout);
    if (arguments_.error()) return;
    const bool by_layers = arguments_.has("num_layers_per_virtual_pipeline_stage");
    const bool by_number = arguments_.has("num_virtual_stages_per_pipeline_rank") || arguments_.has("virtual_pipeline_model_parallel_size");
    if (by_layers && by_number)
      return arguments_.fail("num_layers_per_virtual_pipeline_stage", "and the number of virtual stages of a rank exclude each other");
    if ((first_ > 0 || last_ > 0) && (counts_embedding_ || counts_loss_))
      return arguments_.fail(first_ > 0 ? "decoder_first_pipeline_num_layers" : "decoder_last_pipeline_num_layers",
                             "and account-for-... exclude each other");
    const std::int64_t counted = layers_ + (counts_embedding_ ? 1 : 0) + (counts_loss_ ? 1 : 0);
    const bool uneven = first_ > 0 || last_ > 0;
    if (!layout_.empty() && (by_layers || by_number || uneven || counts_embedding_ || counts_loss_))
      return arguments_.fail(kLayout, "and other arguments that cut the layers exclude each other");
    if (layout_.empty() && !uneven && counted % pipe_ != 0)
      return arguments_.fail("num_layers", fmt::format("{} layers are not divisible by {} pipeline stages", counted, pipe_));
    if (by_layers) {
      const std::int64_t each = arguments_.integer("num_layers_per_virtual_pipeline_stage", 1, 1, kMostLayers);
      if (uneven)
        return arguments_.fail("num_layers_per_virtual_pipeline_stage", "with an uneven first or last stage Megatron asks for "
                                                                        "num-virtual-stages-per-pipeline-rank");
      if (counted / pipe_ % each != 0)
        return arguments_.fail("num_layers_per_virtual_pipeline_stage",
                               fmt::format("{} layers of a stage are not divisible by {}", counted / pipe_, each));
      chunks_ = counted / pipe_ / each;
    } else if (!layout_.empty()) {
      chunks_ = std::ssize(layout_) / pipe_;
    } else {
      chunks_ = arguments_.integer("num_virtual_stages_per_pipeline_rank", arguments_.integer("virtual_pipeline_model_parallel_size", 1, 1, 1024), 1, 1024);
    }
    overlap_ = chunks_ > 1 && !arguments_.flag("no_overlap_p2p_communication") &&
               (!arguments_.has("overlap_p2p_comm") || arguments_.flag("overlap_p2p_comm"));
    flush_ = arguments_.flag("overlap_p2p_communication_warmup_flush") || arguments_.flag("overlap_p2p_comm_warmup_flush");
    const std::string_view said = !layout_.empty() ? kLayout : by_layers ? "num_layers_per_virtual_pipeline_stage" : "num_virtual_stages_per_pipeline_rank";
    if (chunks_ > 1 && overlap_ && pipe_ < 2)
      arguments_.fail(said, "the interleaved schedule needs more than 1 pipeline stage");
    else if (chunks_ > 1 && !overlap_ && pipe_ <= 2)
      arguments_.fail(said, "without overlap of messages the interleaved schedule needs more than 2 pipeline stages: with 2 both neighbours are "
                            "one rank, and a gradient is received for an activation");
  }

  /// "Et*3|(tt|)*2,tL": transformer layers of each part, with repetitions written out.
  void read_layout(std::string text) {
    std::erase(text, ',');
    constexpr std::size_t kLongest = 100'000;
    const auto unrolled = unroll_layout(text, kLongest);
    if (!unrolled || unrolled->empty()) return arguments_.fail(kLayout, fmt::format("'{}' is no layout: parts between |, repetitions as t*3 and (tt|)*2", text.substr(0, 80)));
    layout_.assign(1, 0);
    for (const char letter : *unrolled) {
      if (letter == '|')
        layout_.push_back(0);
      else if (letter == 't')
        ++layout_.back();
      else if (letter == 'm')
        return arguments_.fail(kLayout, "has layers of multi-token prediction (m), which are not imported");
      else if (letter != 'E' && letter != 'L')
        return arguments_.fail(kLayout, fmt::format("has the letter '{}'; E, t, m and L are known", letter));
    }
    if (std::ranges::count(*unrolled, 'E') != 1 || unrolled->front() != 'E' || std::ranges::count(*unrolled, 'L') != 1 || unrolled->back() != 'L')
      return arguments_.fail(kLayout, "must begin with the embedding (E) and end with the loss (L), each once");
    if (const std::int64_t number = std::ranges::count(*unrolled, 't'); number != layers_)
      arguments_.fail(kLayout, fmt::format("has {} layers, not the {} of num-layers", number, layers_));
    else if (std::ssize(layout_) % pipe_ != 0)
      arguments_.fail(kLayout, fmt::format("has {} parts, which are not divisible by {} pipeline stages", layout_.size(), pipe_));
  }

  /// Nothing where brackets or numbers are missing.
  static std::optional<std::string> unroll_layout(std::string_view text, std::size_t longest) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      std::string body(1, text[i++]);
      if (body == "(") {
        const std::size_t close = text.find(')', i);
        if (close == std::string_view::npos) return std::nullopt;
        const auto inner = unroll_layout(text.substr(i, close - i), longest);
        if (!inner) return std::nullopt;
        body = *inner;
        i = close + 1;
      }
      std::size_t times = 1;
      if (i < text.size() && text[i] == '*') {
        const auto [end, code] = std::from_chars(text.data() + i + 1, text.data() + text.size(), times);
        if (code != std::errc{} || times > longest) return std::nullopt;
        i = static_cast<std::size_t>(end - text.data());
      }
      if (out.size() + times * body.size() > longest) return std::nullopt;
      for (; times > 0; --times) out += body;
    }
    return out;
  }

  /// Where each chunk begins in the plan's list: embedding, transformer layers, final norm, output.
  std::vector<std::int64_t> cut(std::int64_t layers) {
    const std::int64_t chunks = pipe_ * chunks_;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(chunks), 0);
    if (!layout_.empty()) return parts_of(layout_);
    std::int64_t rest = layers, of_first = 0, of_last = 0;
    // An uneven first or last stage spreads its own number over its chunks.
    const auto spread = [&](std::int64_t number, std::int64_t stage, std::string_view name) {
      if (number % chunks_ != 0) arguments_.fail(name, fmt::format("{} layers are not divisible by {} virtual stages", number, chunks_));
      for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) sizes[static_cast<std::size_t>(chunk * pipe_ + stage)] = number / chunks_;
      rest -= number;
    };
    if (first_ > 0) spread(of_first = first_, 0, "decoder_first_pipeline_num_layers");
    if (last_ > 0 && pipe_ > 1) spread(of_last = last_, pipe_ - 1, "decoder_last_pipeline_num_layers");
    const std::int64_t stages = pipe_ - (of_first > 0 ? 1 : 0) - (of_last > 0 ? 1 : 0);
    if (counts_embedding_) ++rest;
    if (counts_loss_) ++rest;
    if (rest < 0 || (stages == 0 && rest != 0) || (stages > 0 && rest % (stages * chunks_) != 0)) {
      arguments_.fail("num_layers", fmt::format("{} layers are not divisible by {} virtual stages", rest, stages * chunks_));
      return {};
    }
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const std::int64_t stage = chunk % pipe_;
      if ((of_first > 0 && stage == 0) || (of_last > 0 && stage == pipe_ - 1)) continue;
      sizes[static_cast<std::size_t>(chunk)] = rest / (stages * chunks_);
    }
    if (counts_embedding_) --sizes.front();
    if (counts_loss_) --sizes.back();
    return parts_of(sizes);
  }

  /// With the embedding before and the final norm and the output behind.
  static std::vector<std::int64_t> parts_of(const std::vector<std::int64_t>& sizes) {
    std::vector<std::int64_t> parts = {0};
    for (const std::int64_t size : sizes) parts.push_back(parts.back() + size + (parts.size() == 1 ? 1 : 0));
    parts.back() += 2;
    return parts;
  }

  std::int64_t micro_batches_of_a_step() {
    constexpr std::int64_t kMostSamples = std::int64_t{1} << 31;
    const std::int64_t micro = arguments_.integer("micro_batch_size", 0, 1, kMostSamples);
    if (micro == 0) {
      arguments_.fail("micro_batch_size", "is missing");
      return 1;
    }
    const std::int64_t global = arguments_.integer("global_batch_size", micro * data_, 1, kMostSamples * kMostRanks);
    if (global % (micro * data_) != 0)
      arguments_.fail("global_batch_size", fmt::format("{} is not divisible by micro-batch-size {} times data-parallel size {}", global, micro, data_));
    return std::max<std::int64_t>(1, global / (micro * data_));
  }

  Json plan_of(const MegatronLayers& layers, const std::vector<std::int64_t>& parts, std::int64_t micro_batches) {
    Json plan{{"schema", "lockstep-plan/1"}, {"name", arguments_.source()}};
    plan["framework"] = Json{{"name", "megatron"}};
    if (!version_.empty()) plan["framework"]["version"] = version_;
    plan["topology"] = {{"pipe", pipe_}, {"data", data_}, {"tensor", tensor_}, {"context", context_}, {"expert", expert_}};
    if (expert_tensor_ != tensor_) plan["topology"]["expert_tensor"] = expert_tensor_;
    if (arguments_.flag("use_tp_pp_dp_mapping")) plan["topology"]["order"] = "tp-cp-ep-pp-dp";
    if (const std::int64_t instances = degree("num_distributed_optimizer_instances"); instances > 1)
      plan["topology"]["optimizer_instances"] = instances;
    const bool fp16 = arguments_.flag("fp16"), bf16 = arguments_.flag("bf16");
    if (fp16 && bf16) arguments_.fail("fp16", "and bf16 exclude each other");
    plan["datatype"] = bf16 ? "bf16" : fp16 ? "f16" : "f32";
    plan["layers"] = layers.layers;
    plan["partition"] = {{"parts", parts}};
    const bool distributed = arguments_.flag("use_distributed_optimizer");
    if (arguments_.flag("overlap_param_gather") && !distributed)
      arguments_.fail("overlap_param_gather", "needs use-distributed-optimizer");
    if (arguments_.flag("overlap_param_gather") && !arguments_.flag("overlap_grad_reduce"))
      arguments_.fail("overlap_param_gather", "needs overlap-grad-reduce");
    // No decay: biases and whatever has one dimension.
    plan["optimizer"] = {{"groups", "one_dimensional"},
                         {"stepper", distributed ? "megatron_distributed" : "megatron"},
                         {"clip_grad", arguments_.number("clip_grad", 1)},
                         {"loss_scale", fp16},
                         {"overlap_grad_reduce", arguments_.flag("overlap_grad_reduce")},
                         {"per_token_loss", arguments_.flag("calculate_per_token_loss")}};
    if (arguments_.has("ddp_bucket_size"))
      plan["optimizer"]["bucket_size"] = arguments_.integer("ddp_bucket_size", 1, 1, std::int64_t{1} << 40);
    const bool interleaved = chunks_ > 1;
    Json schedule{{"name", interleaved ? "interleaved" : pipe_ > 1 ? "1f1b" : "none"}, {"micro_batches", micro_batches}};
    if (interleaved) {
      schedule["virtual_stages"] = chunks_;
      schedule["batch_p2p_comm"] = !overlap_;
      schedule["overlap_p2p_comm"] = overlap_;
      if (flush_) schedule["overlap_p2p_comm_warmup_flush"] = true;
      for (const std::string_view name : kOfInterleaving)
        if (arguments_.has(name))
          schedule["microbatch_group_size_per_vp_stage"] = {arguments_.integer(name, 1, 1, plan::kMaxMicroBatches)};
    }
    if (arguments_.flag("variable_seq_lengths")) schedule["variable_seq_lengths"] = true;
    plan["schedule"] = std::move(schedule);
    return plan;
  }

  /// What comes out must be a plan that expands: Megatron's refusals of layouts and schedules are met there.
  Result<MegatronImport> checked(std::string text, std::int64_t micro_batches) {
    const auto plan = plan::read_plan(text, arguments_.source());
    if (!plan) return plan.error();
    constexpr std::int64_t kMostWork = 4'000'000;  // forward passes; larger plans are left to gate
    if (world_ * micro_batches * chunks_ <= kMostWork)
      if (const auto expansion = plan::expand(*plan, plan::Iteration::kFirst); !expansion)
        return Error{expansion.error().code, fmt::format("{}: {}", arguments_.source(), expansion.error().message)};
    return MegatronImport{std::move(text), std::move(assumed_)};
  }

  MegatronArguments& arguments_;
  std::int64_t world_;
  const std::string& version_;
  std::vector<std::string> assumed_{};
  std::int64_t tensor_ = 1, pipe_ = 1, context_ = 1, expert_ = 1, expert_tensor_ = 1, data_ = 1, chunks_ = 1, layers_ = 0, first_ = 0,
               last_ = 0;
  static constexpr std::string_view kLayout = "pipeline_model_parallel_layout";
  std::vector<std::int64_t> layout_{};  ///< transformer layers of each part; empty: the cut follows from numbers
  bool counts_embedding_ = false, counts_loss_ = false, overlap_ = false, flush_ = false;
};

}  // namespace

Result<MegatronImport> import_megatron(MegatronArguments& arguments, std::int64_t world, const std::string& version) {
  return Importer(arguments, world, version).import();
}

}  // namespace lockstep
