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
  const std::optional<Error>& error() const { return error_; }

 private:
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
  void fail(std::string_view section, std::string_view key, std::string_view message) {
    if (!error_)
      error_ = Error{ErrorCode::kMalformed, fmt::format("{}: $.{}{}{}: {}", path_, section,
                                                        section.empty() ? "" : ".", key, message)};
  }

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

Result<Json> plan_from(const DeepSpeedImport& options) {
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
  Json zero = Json::object();
  for (const std::string_view key : {"stage", "reduce_bucket_size", "allgather_bucket_size"})
    if (const auto value = config.integer("zero_optimization", key)) zero[std::string(key)] = *value;
  if (!zero.empty()) plan["zero"] = std::move(zero);
  const auto batches = micro_batches(config, options);
  if (!batches) return batches.error();
  plan["schedule"] = {{"name", options.pipe > 1 ? "1f1b" : "none"}, {"micro_batches", *batches}};
  if (config.error()) return *config.error();
  return plan;
}

}  // namespace

Result<std::string> import_deepspeed(const DeepSpeedImport& options) {
  const auto plan = plan_from(options);
  if (!plan) return plan.error();
  const std::string text = plan->dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
  // What comes out must be a plan: its errors are those of the layer list and of the sizes.
  if (const auto read = plan::read_plan(text, options.layers_path); !read) return read.error();
  return text;
}

}  // namespace lockstep
