// A plan from what a training script is configured with, and the layer list that no configuration holds.
#include "cli/import_deepspeed.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/mapped_file.h"
#include "plan/read_plan.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Result<Json> load_json(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return file.error();
  if (file->contents().size() > plan::kMaxPlanBytes)
    return Error{ErrorCode::kUnsupported, fmt::format("{}: larger than {} bytes", path, plan::kMaxPlanBytes)};
  Json json = Json::parse(file->contents(), nullptr, false, true);  // comments are usual in these files
  if (json.is_discarded()) return Error{ErrorCode::kMalformed, fmt::format("{}: no JSON", path)};
  return json;
}

/// The configuration of DeepSpeed, by path; "auto" and what is missing are nothing.
class Configuration {
 public:
  Configuration(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  /// Whole numbers may be written 5e8.
  std::optional<std::int64_t> integer(std::string_view section, std::string_view key) {
    const Json* const value = find(section, key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number_integer()) return value->get<std::int64_t>();
    constexpr double kLargest = 1e15;
    if (value->is_number_float() && std::floor(value->get<double>()) == value->get<double>() &&
        std::fabs(value->get<double>()) < kLargest)
      return static_cast<std::int64_t>(value->get<double>());
    fail(section, key, "must be a whole number");
    return std::nullopt;
  }
  std::optional<double> number(std::string_view section, std::string_view key) {
    const Json* const value = find(section, key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number()) return value->get<double>();
    fail(section, key, "must be a number");
    return std::nullopt;
  }
  bool boolean(std::string_view section, std::string_view key) {
    const Json* const value = find(section, key);
    if (value == nullptr) return false;
    if (value->is_boolean()) return value->get<bool>();
    fail(section, key, "must be true or false");
    return false;
  }
  std::string text(std::string_view section, std::string_view key) {
    const Json* const value = find(section, key);
    if (value == nullptr) return "";
    if (value->is_string()) return value->get<std::string>();
    fail(section, key, "must be a string");
    return "";
  }
  const std::optional<Error>& error() const { return error_; }
  void fail(std::string_view section, std::string_view key, std::string_view message) {
    if (!error_) error_ = Error{ErrorCode::kMalformed, fmt::format("{}: {}", place(section, key), message)};
  }
  std::string place(std::string_view section, std::string_view key) const {
    return fmt::format("{}: $.{}{}{}", path_, section, section.empty() ? "" : ".", key);
  }

  const Json* find(std::string_view section, std::string_view key) {
    const Json* object = &json_;
    if (!section.empty()) {
      const auto found = json_.find(section);
      if (found == json_.end() || found->is_null()) return nullptr;
      if (!found->is_object()) {
        fail("", section, "must be an object");
        return nullptr;
      }
      object = &*found;
    }
    const auto found = object->find(key);
    return found == object->end() || found->is_null() || *found == "auto" ? nullptr : &*found;
  }

 private:
  const Json& json_;
  std::string path_;
  std::optional<Error> error_{};
};

/// Micro-batches of a step: as configured, else what the batch sizes leave.
Result<std::int64_t> micro_batches(Configuration& config, const DeepSpeedImport& options) {
  if (const auto steps = config.integer("", "gradient_accumulation_steps")) return *steps;
  const auto batch = config.integer("", "train_batch_size");
  const auto micro = config.integer("", "train_micro_batch_size_per_gpu");
  if (!batch || !micro) return 1;
  if (*micro < 1 || *batch % (*micro * options.data) != 0)
    return Error{ErrorCode::kMalformed, fmt::format("{}: $.train_batch_size: {} is no multiple of "
                                                    "train_micro_batch_size_per_gpu ({}) times --data ({})",
                                                    options.config_path, *batch, *micro, options.data)};
  return *batch / (*micro * options.data);
}

struct Setting {
  std::string_view section{}, key{};
  std::string_view unless{};  ///< what it says as JSON where it changes nothing
};
/// Settings that change which calls are made, and that a plan has no word for.
constexpr Setting kNotTaken[] = {
    {"", "sparse_gradients", "false"},
    {"", "communication_data_type", ""},
    {"", "seq_parallel_communication_data_type", ""},
    {"", "sequence_parallel_size", "1"},
    {"pipeline", "pipe_partitioned", "false"},
    {"pipeline", "grad_partitioned", "false"},
    {"curriculum_learning", "enabled", "false"},
    {"tensor_parallel", "autotp_size", "0"},
    {"zero_optimization", "reduce_scatter", "true"},
    {"zero_optimization", "allgather_partitions", "true"},
    {"zero_optimization", "round_robin_gradients", "false"},
    {"zero_optimization", "offload_optimizer", ""},
    {"zero_optimization", "offload_param", ""},
    {"zero_optimization", "zero_quantized_weights", "false"},
    {"zero_optimization", "zero_quantized_nontrainable_weights", "false"},
    {"zero_optimization", "zero_quantized_gradients", "false"},
    {"zero_optimization", "use_all_reduce_for_fetch_params", "false"},
    {"zero_optimization", "stage3_use_all_reduce_for_fetch_params", "false"},
};

std::vector<std::string> settings_not_taken(Configuration& config) {
  std::vector<std::string> notes;
  const auto note = [&](std::string_view section, std::string_view key, const std::string& value) {
    notes.push_back(fmt::format("{}: {} is not in the plan, though it changes which calls are made", config.place(section, key),
                                value.substr(0, 80)));
  };
  for (const auto& [section, key, unless] : kNotTaken)
    if (const Json* const value = config.find(section, key))
      if (const std::string text = value->dump(-1, ' ', true, Json::error_handler_t::replace); text != unless)
        note(section, key, text);
  // These compress their gradients and reduce them by themselves.
  const std::string optimizer = config.text("optimizer", "type");
  if (optimizer.starts_with("OneBit") || optimizer.starts_with("ZeroOne")) note("optimizer", "type", optimizer);
  return notes;
}

/// ZeRO's own, and who shares second copies of its parameters.
Json zero_section(Configuration& config) {
  constexpr std::string_view kSection = "zero_optimization";
  Json zero = Json::object();
  for (const std::string_view key : {"stage", "reduce_bucket_size", "allgather_bucket_size"})
    if (const auto value = config.integer(kSection, key)) zero[std::string(key)] = *value;
  const bool third = zero.value("stage", 0) == 3;
  const auto copies = config.integer(kSection, "zero_hpz_partition_size");
  if (third && copies && *copies != 1) zero["zero_hpz_partition_size"] = *copies;
  if (third && config.integer(kSection, "mics_shard_size").value_or(-1) > 0)
    config.fail(kSection, "mics_shard_size", "MiCS is not expanded: which of its calls are on which groups differs between "
                                             "DeepSpeed's releases");
  return zero;
}

Result<DeepSpeedPlan> plan_from(const DeepSpeedImport& options) {
  const auto config_json = load_json(options.config_path);
  if (!config_json) return config_json.error();
  if (!config_json->is_object())
    return Error{ErrorCode::kMalformed, fmt::format("{}: $: must be an object", options.config_path)};
  const auto layers = load_json(options.layers_path);
  if (!layers) return layers.error();
  Configuration config(*config_json, options.config_path);

  Json plan{{"schema", "lockstep-plan/1"}, {"name", options.config_path}};
  plan["framework"] = Json{{"name", "deepspeed"}};
  if (!options.version.empty()) plan["framework"]["version"] = options.version;
  plan["topology"] = {{"pipe", options.pipe}, {"data", options.data}, {"tensor", options.tensor}};
  const bool bf16 = config.boolean("bf16", "enabled");
  const bool fp16 = config.boolean("fp16", "enabled");
  if (bf16 && fp16)
    return Error{ErrorCode::kMalformed,
                 fmt::format("{}: $.bf16.enabled: contradicts fp16.enabled", options.config_path)};
  plan["datatype"] = bf16 ? "bf16" : fp16 ? "f16" : "f32";
  plan["layers"] = layers->is_object() && layers->contains("layers") ? layers->at("layers") : *layers;
  if (options.pipe > 1) {
    Json partition = Json::object();
    partition["method"] = options.partition.empty() ? "parameters" : options.partition;
    plan["partition"] = std::move(partition);
  }
  plan["optimizer"] = {{"groups", options.groups},
                       {"clip_grad", config.number("", "gradient_clipping").value_or(0)}};
  Json zero = zero_section(config);
  // With BF16 and gradients added up in FP32, ZeRO-1 is done by the optimizer that has this from itself.
  if (bf16 && zero.value("stage", 0) == 1 && config.text("data_types", "grad_accum_dtype") == "fp32")
    plan["optimizer"]["stepper"] = "bf16";
  if (!zero.empty()) plan["zero"] = std::move(zero);
  const auto batches = micro_batches(config, options);
  if (!batches) return batches.error();
  plan["schedule"] = {{"name", options.pipe > 1 ? "1f1b" : "none"}, {"micro_batches", *batches}};
  std::vector<std::string> notes = settings_not_taken(config);
  if (config.error()) return *config.error();
  return DeepSpeedPlan{plan.dump(1, ' ', false, Json::error_handler_t::replace) + '\n', std::move(notes)};
}

}  // namespace

Result<DeepSpeedPlan> import_deepspeed(const DeepSpeedImport& options) {
  auto plan = plan_from(options);
  if (!plan) return plan.error();
  // What comes out must be a plan: its errors are those of the layer list, or of sizes.
  for (const std::string& source : {options.layers_path, options.config_path}) {
    const auto read = plan::read_plan(plan->plan, source);
    if (read) break;
    const bool of_layers = read.error().message.starts_with(source + ": $.layers");
    if (of_layers == (source == options.layers_path)) return read.error();
  }
  return plan;
}

}  // namespace lockstep
