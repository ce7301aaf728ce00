#include "cli/megatron_layers.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <charconv>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kLargest = std::int64_t{1} << 24;

Json parameter(std::string_view name, Json shape, std::string_view module = "") {
  Json one{{"name", name}};
  if (!module.empty()) one["module"] = module;
  one["shape"] = std::move(shape);
  return one;
}

class LayerMaker {
 public:
  LayerMaker(MegatronArguments& arguments, const MegatronDegrees& degrees, std::vector<std::string>& assumed)
      : arguments_(arguments), degrees_(degrees), assumed_(assumed) {}

  MegatronLayers make() {
    MegatronLayers made{.layers = Json::array()};
    made.transformer_layers = size("num_layers", 0);
    read_sizes();
    const std::vector<bool> with_experts = layers_with_experts(made.transformer_layers);
    if (arguments_.error()) return made;
    const bool tied = !arguments_.flag("untie_embeddings_and_output_weights");
    Json embedding{{"name", "embedding"}, {"class", "LanguageModelEmbedding"}};
    embedding["parameters"] = {parameter("word_embeddings.weight", {vocabulary_, hidden_})};
    if (arguments_.text("position_embedding_type", "learned_absolute") == "learned_absolute")
      embedding["parameters"].push_back(parameter("position_embeddings.weight", {size("max_position_embeddings", sequence_), hidden_}));
    const std::int64_t split = degrees_.context * (arguments_.flag("sequence_parallel") ? degrees_.tensor : 1);
    embedding["outputs"] = {Json{{"shape", {divided("seq_length", sequence_, split), size("micro_batch_size", 1), hidden_}}}};
    tie(embedding, tied, "word_embeddings.weight");
    made.layers.push_back(std::move(embedding));
    for (std::size_t i = 0; i < with_experts.size();) {
      std::size_t end = i;
      while (end < with_experts.size() && with_experts[end] == with_experts[i]) ++end;
      Json layer = transformer_layer(with_experts[i]);
      if (end - i > 1) layer["repeat"] = end - i;
      made.layers.push_back(std::move(layer));
      i = end;
    }
    Json norm{{"name", "final norm"}, {"class", norm_class_}, {"parameters", Json::array()}};
    add_norm(norm["parameters"], "", "");
    made.layers.push_back(std::move(norm));
    Json output{{"name", "output layer"}, {"class", "ColumnParallelLinear"}, {"parameters", {parameter("weight", {vocabulary_, hidden_})}}};
    tie(output, tied, "weight");
    made.layers.push_back(std::move(output));
    return made;
  }

 private:
  std::int64_t size(std::string_view name, std::int64_t otherwise) { return arguments_.integer(name, otherwise, 1, kLargest); }

  std::int64_t divided(std::string_view name, std::int64_t whole, std::int64_t by) {
    if (whole % by != 0) arguments_.fail(name, fmt::format("{} is not divisible by {} ranks", whole, by));
    return whole / by;
  }

  std::int64_t required(std::string_view name) {
    const std::int64_t value = size(name, 0);
    if (value == 0) arguments_.fail(name, "is missing");
    return value;
  }

  void read_sizes() {
    hidden_ = required("hidden_size");
    heads_ = required("num_attention_heads");
    sequence_ = required("seq_length");
    if (arguments_.error()) return;
    if (!arguments_.has("kv_channels") && hidden_ % heads_ != 0)
      arguments_.fail("hidden_size", fmt::format("{} is not divisible by {} attention heads", hidden_, heads_));
    gated_ = arguments_.flag("swiglu");
    channels_ = size("kv_channels", std::max<std::int64_t>(1, hidden_ / heads_));
    groups_ = arguments_.flag("group_query_attention") ? size("num_query_groups", heads_) : heads_;
    // Where Megatron is not told: four times as wide; with a gate two thirds of that, in steps of 64.
    ffn_ = size("ffn_hidden_size", gated_ ? std::max<std::int64_t>(64, hidden_ * 8 / 3 / 64 * 64) : 4 * hidden_);
    norm_class_ = arguments_.text("normalization", "LayerNorm");
    biased_ = !arguments_.flag("disable_bias_linear") && (!arguments_.has("add_bias_linear") || arguments_.flag("add_bias_linear"));
    std::int64_t words = size("padded_vocab_size", 0);
    if (words == 0) {
      words = size("vocab_size", 0);
      if (words == 0) {
        words = 50'257;
        assumed_.push_back("the arguments do not say how large the vocabulary is: 50257 words are assumed (--vocab-size)");
      }
      const std::int64_t step = size("make_vocab_size_divisible_by", 128) * degrees_.tensor;
      words = (words + step - 1) / step * step;
    }
    vocabulary_ = divided("padded_vocab_size", words, degrees_.tensor);
  }

  /// "2": every second layer; "[0,1]*3+[1]": as Python reads it.
  std::vector<bool> layers_with_experts(std::int64_t layers) {
    std::vector<bool> result(static_cast<std::size_t>(layers), false);
    const std::int64_t experts = arguments_.integer("num_experts", arguments_.integer("num_moe_experts", 0, 1, 1 << 16), 1, 1 << 16);
    if (experts == 0) {
      if (degrees_.expert > 1) arguments_.fail("expert_model_parallel_size", "needs num-experts");
      return result;
    }
    local_experts_ = divided("num_experts", experts, degrees_.expert);
    std::string pattern = arguments_.text("moe_layer_freq", "1");
    std::int64_t every = 0;
    const auto done = std::from_chars(pattern.data(), pattern.data() + pattern.size(), every);
    if (done.ec == std::errc{} && done.ptr == pattern.data() + pattern.size() && every > 0) {
      for (std::size_t i = 0; i < result.size(); ++i) result[i] = i % static_cast<std::size_t>(every) == 0;
      return result;
    }
    std::erase_if(pattern, [](char c) { return c == '(' || c == ')' || c == ' '; });
    std::vector<bool> listed;
    static const RE2 part(R"(\[([01](?:,[01])*)\](?:\*([0-9]{1,5}))?(?:\+|$))");
    re2::StringPiece rest(pattern), items, times;
    while (!rest.empty() && RE2::Consume(&rest, part, &items, &times)) {
      std::int64_t number = 1;
      if (!times.empty()) std::from_chars(times.data(), times.data() + times.size(), number);
      for (std::int64_t i = 0; i < number && listed.size() <= result.size(); ++i)
        for (const char item : items)
          if (item != ',') listed.push_back(item == '1');
    }
    if (!rest.empty())
      arguments_.fail("moe_layer_freq", fmt::format("'{}' is no number and no list of 0 and 1", pattern.substr(0, 80)));
    else if (listed.size() != result.size())
      arguments_.fail("moe_layer_freq", fmt::format("does not have an entry for each of {} layers", result.size()));
    return listed;
  }

  void add_norm(Json& parameters, std::string_view prefix, std::string_view module) const {
    parameters.push_back(parameter(fmt::format("{}weight", prefix), {hidden_}, module));
    if (norm_class_ == "LayerNorm") parameters.push_back(parameter(fmt::format("{}bias", prefix), {hidden_}, module));
  }

  Json transformer_layer(bool experts) {
    Json layer{{"name", experts ? "MoE layer" : "transformer layer"}, {"class", experts ? "MoETransformerLayer" : "TransformerLayer"}};
    if (experts) layer["experts"] = true;
    Json& parameters = layer["parameters"] = Json::array();
    const std::int64_t across = divided("num_attention_heads", heads_, degrees_.tensor) * channels_;
    const std::int64_t query_groups = groups_ % degrees_.tensor == 0 ? groups_ / degrees_.tensor : 1;
    const std::int64_t qkv = across + 2 * query_groups * channels_;
    add_norm(parameters, "input_layernorm.", norm_class_);
    add_linear(parameters, "self_attention.linear_qkv.", qkv, hidden_, "ColumnParallelLinear", biased_ || arguments_.flag("add_qkv_bias"), qkv);
    add_linear(parameters, "self_attention.linear_proj.", hidden_, across, "RowParallelLinear", biased_, hidden_);
    add_norm(parameters, "pre_mlp_layernorm.", norm_class_);
    const std::int64_t gates = gated_ ? 2 : 1;
    if (!experts) {
      const std::int64_t width = divided("ffn_hidden_size", ffn_, degrees_.tensor);
      add_linear(parameters, "mlp.linear_fc1.", gates * width, hidden_, "ColumnParallelLinear", biased_, gates * width);
      add_linear(parameters, "mlp.linear_fc2.", hidden_, width, "RowParallelLinear", biased_, hidden_);
      return layer;
    }
    parameters.push_back(parameter("mlp.router.weight", {local_experts_ * degrees_.expert, hidden_}));
    const std::int64_t width = divided("moe_ffn_hidden_size", size("moe_ffn_hidden_size", ffn_), degrees_.expert_tensor);
    for (std::int64_t i = 0; i < local_experts_; ++i) {
      for (const auto& [name, shape] : {std::pair("linear_fc1", Json{gates * width, hidden_}), std::pair("linear_fc2", Json{hidden_, width})}) {
        parameters.push_back(parameter(fmt::format("mlp.experts.{}.{}.weight", i, name), shape));
        parameters.back()["expert"] = true;
      }
    }
    return layer;
  }

  static void add_linear(Json& parameters, std::string_view prefix, std::int64_t rows, std::int64_t columns, std::string_view module, bool biased,
                         std::int64_t biases) {
    parameters.push_back(parameter(fmt::format("{}weight", prefix), {rows, columns}, module));
    if (biased) parameters.push_back(parameter(fmt::format("{}bias", prefix), {biases}, module));
  }

  static void tie(Json& layer, bool tied, std::string_view weight) {
    if (!tied) return;
    layer["tied"] = "embedding";
    layer["tied_weights"] = {weight};
  }

  MegatronArguments& arguments_;
  MegatronDegrees degrees_;
  std::vector<std::string>& assumed_;
  std::int64_t hidden_ = 1, heads_ = 1, sequence_ = 1, channels_ = 1, groups_ = 1, ffn_ = 1, vocabulary_ = 1, local_experts_ = 0;
  bool gated_ = false, biased_ = true;
  std::string norm_class_{};
};

}  // namespace

MegatronLayers megatron_layers(MegatronArguments& arguments, const MegatronDegrees& degrees, std::vector<std::string>& assumed) {
  return LayerMaker(arguments, degrees, assumed).make();
}

}  // namespace lockstep
