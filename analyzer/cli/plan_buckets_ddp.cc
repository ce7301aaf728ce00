// `lockstep plan buckets --framework ddp`: torch's assignment of tensors to buckets, and a DDP run over its
// iterations.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "cli/plan_buckets_of.h"
#include "plan/versions.h"

namespace lockstep {
namespace {

constexpr PlanParameter kParameters[] = {
    {"numels", ParameterKind::kIntegers, "elements of each tensor, in order of registration"},
    {"dtype", ParameterKind::kText, "default float32"},
    {"limits_bytes", ParameterKind::kIntegers,
     "assignment alone: the limits of the first, second, ... bucket"},
    {"order", ParameterKind::kIntegers, "a run: layers in the order of their forward pass"},
    {"layers", ParameterKind::kInteger,
     "a run without --numels: that many Linear(features, features), default: those in --order"},
    {"features", ParameterKind::kInteger, "default 512"},
    {"tensors_per_layer", ParameterKind::kInteger, "with --numels: default 2, a weight and a bias"},
    {"cap_mb", ParameterKind::kInteger, "bucket_cap_mb, default 25"},
    {"first_bucket_bytes", ParameterKind::kInteger, "default 1048576, or as --version has it"},
    {"version", ParameterKind::kText, "of torch: from 2.5 on --cap-mb holds for the first bucket, too"},
    {"find_unused", ParameterKind::kBoolean, ""},
    {"static", ParameterKind::kBoolean, "static_graph"},
    {"skip", ParameterKind::kJson, "{\"1\": [2]}: rank 1 does not use layer 2"},
    {"iterations", ParameterKind::kInteger, "default 4"},
    {"ranks", ParameterKind::kInteger, "default 2"},
    {"id", ParameterKind::kInteger, "kept in the result, as is --name"},
    {"name", ParameterKind::kText, ""},
};

constexpr std::int64_t kLinearFeatures = 512;
constexpr std::int64_t kMostIterations = 64;
constexpr std::int64_t kMostRanks = 1024;
constexpr std::int64_t kMegabyte = 1024 * 1024;

Result<PlanJson> assignment_json(const PlanArguments& arguments) {
  const auto numels = element_counts(arguments, "numels");
  if (!numels) return numels.error();
  const auto limits = element_counts(arguments, "limits_bytes");
  if (!limits) return limits.error();
  const std::string dtype = arguments.text("dtype", "float32");
  const auto bytes = plan::element_bytes(dtype);
  if (!bytes) return Error{ErrorCode::kMalformed, fmt::format("dtype: '{}' is no datatype", dtype)};
  if (limits->empty()) return Error{ErrorCode::kMalformed, "limits_bytes: at least one limit is needed"};
  std::vector<plan::DdpTensor> tensors;
  for (const std::uint64_t elements : *numels) tensors.push_back({elements * *bytes, 0});
  PlanJson buckets = PlanJson::array();
  PlanJson bucket_limits = PlanJson::array();
  for (const plan::DdpBucket& bucket : plan::assign_ddp_buckets(tensors, *limits, false)) {
    buckets.push_back(bucket.tensors);
    bucket_limits.push_back(bucket.limit_bytes);
  }
  return PlanJson{
      {"numels", *numels}, {"dtype", dtype}, {"limits_bytes", *limits}, {"result", {buckets, bucket_limits}}};
}

/// A model of layers with the same number of tensors each.
struct Model {
  std::vector<std::uint64_t> elements{};
  std::size_t per_layer = 2;
  std::size_t layers() const { return elements.size() / per_layer; }
};

Result<Model> model_from(const PlanArguments& arguments, const std::vector<std::int64_t>& order) {
  Model model;
  auto numels = element_counts(arguments, "numels");
  if (!numels) return numels.error();
  const std::int64_t per_layer = arguments.integer("tensors_per_layer", 2);
  if (per_layer < 1) return Error{ErrorCode::kMalformed, "tensors_per_layer must be at least 1"};
  model.per_layer = static_cast<std::size_t>(per_layer);
  model.elements = *std::move(numels);
  if (!model.elements.empty()) {
    if (model.elements.size() % model.per_layer != 0)
      return Error{ErrorCode::kMalformed,
                   fmt::format("numels: {} tensors are no whole number of layers of {}",
                               model.elements.size(), per_layer)};
    return model;
  }
  model.per_layer = 2;
  const auto named = order.empty() ? 0 : std::ranges::max(order);
  const std::int64_t layers =
      arguments.integer("layers", std::min<std::int64_t>(named, plan::kMaxTensors) + 1);
  const std::int64_t features = arguments.integer("features", kLinearFeatures);
  if (layers < 1 || static_cast<std::uint64_t>(layers) > plan::kMaxTensors / 2 || features < 1 ||
      features > (std::int64_t{1} << 24))
    return Error{ErrorCode::kMalformed, "layers or features is out of range"};
  const auto width = static_cast<std::uint64_t>(features);
  for (std::int64_t layer = 0; layer < layers; ++layer)
    model.elements.insert(model.elements.end(), {width * width, width});
  return model;
}

// Gradients come from the last layer that ran to the first, within a layer from the last tensor to the first.
Result<std::vector<std::size_t>> ready_order(const Model& model, const std::vector<std::int64_t>& order) {
  std::vector<std::size_t> ready;
  std::vector<bool> seen(model.layers(), false);
  for (auto layer = order.rbegin(); layer != order.rend(); ++layer) {
    if (*layer < 0 || static_cast<std::size_t>(*layer) >= model.layers())
      return Error{ErrorCode::kMalformed, fmt::format("order: there is no layer {}", *layer)};
    const auto index = static_cast<std::size_t>(*layer);
    if (seen[index]) return Error{ErrorCode::kMalformed, fmt::format("order: layer {} runs twice", *layer)};
    seen[index] = true;
    for (std::size_t i = model.per_layer; i-- > 0;) ready.push_back(index * model.per_layer + i);
  }
  return ready;
}

PlanJson iteration_json(int iteration, const Model& model, const std::vector<plan::DdpBucket>& buckets) {
  PlanJson list = PlanJson::array();
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    std::uint64_t elements = 0;
    for (const std::size_t tensor : buckets[i].tensors) elements += model.elements[tensor];
    list.push_back({{"index", i},
                    {"numel", elements},
                    {"n_params", buckets[i].tensors.size()},
                    {"is_last", i + 1 == buckets.size()}});
  }
  return {{"iter", iteration}, {"buckets", list}};
}

Result<PlanJson> run_json(const PlanArguments& arguments) {
  std::vector<std::int64_t> order = arguments.integers("order");
  const auto model = model_from(arguments, order);
  if (!model) return model.error();
  if (order.empty()) {
    order.resize(model->layers());
    std::iota(order.begin(), order.end(), 0);
  }
  const auto ready = ready_order(*model, order);
  if (!ready) return ready.error();
  const std::string dtype = arguments.text("dtype", "float32");
  const auto bytes = plan::element_bytes(dtype);
  if (!bytes) return Error{ErrorCode::kMalformed, fmt::format("dtype: '{}' is no datatype", dtype)};
  const std::int64_t cap_mb = arguments.integer("cap_mb", 25);
  const bool caps_first =
      arguments.has("version") && arguments.has("cap_mb") && plan::torch_caps_first_bucket(arguments.text("version", ""));
  const std::int64_t first_bytes = arguments.integer("first_bucket_bytes", caps_first ? cap_mb * kMegabyte : kMegabyte);
  const std::int64_t iterations = arguments.integer("iterations", 4);
  const std::int64_t ranks = arguments.integer("ranks", 2);
  if (cap_mb < 0 || cap_mb > std::numeric_limits<std::int32_t>::max() || first_bytes < 0 || iterations < 1 ||
      iterations > kMostIterations || ranks < 1 || ranks > kMostRanks)
    return Error{ErrorCode::kMalformed, "cap_mb, first_bucket_bytes, iterations or ranks is out of range"};

  plan::DdpOptions options;
  options.cap_bytes = static_cast<std::uint64_t>(cap_mb * kMegabyte);
  options.first_bucket_bytes = static_cast<std::uint64_t>(first_bytes);
  options.find_unused = arguments.boolean("find_unused", false);
  options.static_graph = arguments.boolean("static", false);
  std::vector<plan::DdpTensor> tensors;
  for (const std::uint64_t elements : model->elements) tensors.push_back({elements * *bytes, 0});
  PlanJson log = PlanJson::array();
  for (int iteration = 0; iteration < iterations; ++iteration)
    log.push_back(iteration_json(iteration, *model, plan::ddp_buckets(tensors, *ready, options, iteration)));

  PlanJson out = PlanJson::object();
  for (const auto& [key, value] : arguments.values.items()) out[key] = value;
  PlanJson& by_rank = out["log"];  // all ranks reduce the same buckets, or none could
  for (std::int64_t rank = 0; rank < ranks; ++rank) by_rank[std::to_string(rank)] = log;
  return out;
}

}  // namespace

int plan_buckets_of_ddp(const Subcommand& subcommand, std::span<const std::string_view> args) {
  PlanArguments arguments;
  if (const auto done = parse_plan_arguments(subcommand, kParameters, args, arguments)) return *done;
  if (arguments.has("limits_bytes")) return print_plan_json(assignment_json(arguments));
  if (arguments.has("order") || arguments.has("numels") || arguments.has("layers"))
    return print_plan_json(run_json(arguments));
  return usage_error(subcommand, "--numels and --limits-bytes are needed, or --order");
}

}  // namespace lockstep
