// From the text of a plan file to a Plan: fields, limits, and what follows from the framework where the file
// is silent.
#include "plan/read_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "plan/json_fields.h"
#include "plan/rank_groups.h"
#include "plan/versions.h"

namespace lockstep::plan {
namespace {

using Json = Fields::Json;

constexpr std::array<std::string_view, 3> kFrameworks = {"deepspeed", "megatron", "torch"};
constexpr std::array<std::string_view, 4> kGroupRules = {"single", "megatron", "one_dimensional",
                                                         "three_way"};
constexpr std::array<std::string_view, 10> kSteppers = {"zero", "zero3",  "fused",    "unfused",
                                                        "bf16", "engine", "megatron", "megatron_distributed",
                                                        "ddp",  "fsdp2"};
constexpr std::array<std::string_view, 3> kNorms = {"per_group", "once", "vector"};
constexpr std::array<std::string_view, 3> kReductions = {"buckets", "flat_all_reduce", "flat_reduce_scatter"};
constexpr std::array<std::string_view, 2> kAlgorithms = {"binary_search", "dynamic"};
constexpr std::array<std::string_view, 6> kDatatypes = {"f16", "bf16", "f32", "f64", "i64", "u8"};
constexpr std::size_t kMaxParameters = 2'000'000;  // of all layers
constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;
constexpr std::uint64_t kMaxShapeElements = std::uint64_t{1} << 40;  // sums of all parameters stay below 2^63

class PlanReader {
 public:
  explicit PlanReader(const Json& file) : file_(file) {}

  Result<Plan> read() {
    Fields root(file_, "$", error_);
    if (const std::string schema = root.text("schema", "lockstep-plan/1"); schema != "lockstep-plan/1")
      root.fail("$.schema", fmt::format("must be lockstep-plan/1, not {}", schema));
    plan_.name = root.text("name", "");
    static_cast<void>(root.text("description", ""));
    Fields framework = root.object("framework");
    if (!root.has("framework") || !framework.has("name")) root.fail("$.framework.name", "is missing");
    plan_.framework = static_cast<Framework>(framework.choice("name", 0, kFrameworks));
    plan_.version = framework.text("version", "");
    framework.end();
    behaviour_ = deepspeed_behaviour(plan_.version);
    read_topology(root.object("topology"));
    plan_.datatype = kDatatypes[root.choice("datatype", 2, kDatatypes)];
    read_layers(root);
    read_partition(root.object("partition"));
    read_optimizer(root, root.object("optimizer"));
    read_schedule(root.object("schedule"));
    read_overrides(root);
    root.end();
    if (error_) return *error_;
    check_ties();
    check_skips();
    if (error_) return *error_;
    return std::move(plan_);
  }

 private:
  void read_topology(Fields fields) {
    Topology& topology = plan_.topology;
    const auto degree = [&fields](std::string_view key, std::int64_t otherwise = 1) {
      return fields.integer(key, otherwise, 1, kMaxPlanRanks);
    };
    topology.pipe = degree("pipe");
    topology.data = degree("data");
    topology.tensor = degree("tensor");
    topology.context = degree("context");
    topology.expert = degree("expert");
    topology.expert_tensor = fields.integer("expert_tensor", 0, 0, kMaxPlanRanks);
    topology.replicate = degree("replicate");
    topology.order = fields.text("order", "");
    topology.optimizer_instances = degree("optimizer_instances");
    fields.end();
    std::int64_t ranks = 1;
    for (const std::int64_t size : {topology.pipe, topology.data, topology.tensor, topology.context}) {
      ranks *= size;
      if (ranks > kMaxPlanRanks)
        return fields.fail("$.topology", fmt::format("more than {} ranks", kMaxPlanRanks));
    }
    if (topology.data % topology.replicate != 0)
      fields.fail("$.topology.replicate",
                  fmt::format("{} does not divide data, which is {}", topology.replicate, topology.data));
    if (plan_.framework == Framework::kDeepSpeed && topology.context != 1)
      fields.fail("$.topology.context", "DeepSpeed plans have no context parallelism");
    if (plan_.framework != Framework::kMegatron && !topology.order.empty())
      fields.fail("$.topology.order", "only Megatron plans have an order of ranks");
  }

  TensorShape read_shape(Fields& fields) {
    TensorShape shape;
    shape.sizes = fields.integers("shape", 0, kMaxSize);
    shape.datatype = fields.text("datatype", "");
    if (!shape.datatype.empty() && std::ranges::find(kDatatypes, shape.datatype) == kDatatypes.end())
      fields.fail(fields.path_of("datatype"), "no such datatype");
    std::uint64_t elements = 1;
    for (const std::int64_t size : shape.sizes) {
      if (size > 0 && elements > kMaxShapeElements / static_cast<std::uint64_t>(size)) {
        fields.fail(fields.path_of("shape"), "too many elements");
        break;
      }
      elements *= static_cast<std::uint64_t>(size);
    }
    return shape;
  }

  Parameter read_parameter(const Json& value, const std::string& path) {
    Fields fields(value, path, error_);
    Parameter parameter;
    parameter.name = fields.text("name", "");
    if (parameter.name.empty()) fields.fail(fields.path_of("name"), "is missing");
    parameter.module = fields.text("module", "");
    if (!fields.has("shape")) fields.fail(fields.path_of("shape"), "is missing");
    parameter.shape = read_shape(fields);
    parameter.expert = fields.boolean("expert", false);
    parameter.frozen = fields.boolean("frozen", false);
    parameter.unused = fields.boolean("unused", false);
    parameter.sparse = fields.boolean("sparse", false);
    fields.end();
    return parameter;
  }

  Layer read_layer(Fields& fields) {
    Layer layer;
    layer.name = fields.text("name", "");
    layer.class_name = fields.text("class", "");
    layer.tied = fields.text("tied", "");
    layer.tied_weights = fields.texts("tied_weights");
    layer.experts = fields.boolean("experts", false);
    layer.skips_to = fields.integers("skips_to", 0, static_cast<std::int64_t>(kMaxLayers));
    const auto parameters = fields.elements("parameters", kMaxParameters);
    for (std::size_t i = 0; i < parameters.size() && !error_; ++i)
      layer.parameters.push_back(read_parameter(parameters[i], fields.path_of("parameters", i)));
    if (fields.has("outputs")) {
      layer.outputs.emplace();
      const auto outputs = fields.elements("outputs", 1000);
      for (std::size_t i = 0; i < outputs.size() && !error_; ++i) {
        Fields output(outputs[i], fields.path_of("outputs", i), error_);
        layer.outputs->push_back(read_shape(output));
        output.end();
      }
    }
    if (layer.tied.empty() && !layer.tied_weights.empty())
      fields.fail(fields.path_of("tied_weights"), "needs the field tied");
    for (const std::string& name : layer.tied_weights)
      if (std::ranges::find(layer.parameters, name, &Parameter::name) == layer.parameters.end())
        fields.fail(fields.path_of("tied_weights"), fmt::format("there is no parameter '{}'", name));
    return layer;
  }

  void read_layers(Fields& root) {
    const auto layers = root.elements("layers", kMaxLayers);
    if (layers.empty()) root.fail("$.layers", "at least one layer is needed");
    std::size_t parameters = 0;
    for (std::size_t i = 0; i < layers.size() && !error_; ++i) {
      Fields fields(layers[i], root.path_of("layers", i), error_);
      const Layer layer = read_layer(fields);
      const std::int64_t repeat = fields.integer("repeat", 1, 1, static_cast<std::int64_t>(kMaxLayers));
      fields.end();
      parameters += layer.parameters.size() * static_cast<std::size_t>(repeat);
      if (plan_.layers.size() + static_cast<std::size_t>(repeat) > kMaxLayers || parameters > kMaxParameters)
        return fields.fail(fields.path_of("repeat"), "too many layers or parameters");
      if (repeat > 1 && !layer.tied.empty())
        fields.fail(fields.path_of("repeat"), "a tied layer is not repeated");
      if (repeat > 1 && !layer.skips_to.empty())
        fields.fail(fields.path_of("repeat"), "a layer with skip connections is not repeated");
      for (const std::int64_t to : layer.skips_to)
        if (to <= std::ssize(plan_.layers))
          fields.fail(fields.path_of("skips_to"),
                      fmt::format("{} is no later layer: this one is layer {}", to, plan_.layers.size()));
      plan_.layers.insert(plan_.layers.end(), static_cast<std::size_t>(repeat), layer);
    }
  }

  void check_skips() {
    const bool known = plan_.framework == Framework::kTorch &&
                       (plan_.schedule.name == "gpipe" || plan_.schedule.name == "1f1b" || plan_.schedule.name == "none");
    for (std::size_t i = 0; i < plan_.layers.size() && !error_; ++i) {
      const auto& skips = plan_.layers[i].skips_to;
      if (skips.empty()) continue;
      // The index of the file's entry is not that of the layer, where entries are repeated: the layer is named.
      const std::string where = fmt::format("$.layers: skips_to of layer {} ({})", i, display_name(plan_.layers[i]));
      if (std::ranges::any_of(skips, [&](std::int64_t to) { return to >= std::ssize(plan_.layers); }))
        error_ = Error{ErrorCode::kMalformed, fmt::format("{}: there are {} layers", where, plan_.layers.size())};
      else if (!known)
        error_ = Error{ErrorCode::kMalformed,
                       fmt::format("{}: only torch's gpipe and 1f1b pass tensors over a stage", where)};
    }
  }

  void read_partition(Fields fields) {
    const bool deepspeed = plan_.framework == Framework::kDeepSpeed;
    plan_.partition_method = fields.text("method", deepspeed ? "parameters" : "uniform");
    plan_.algorithm =
        behaviour_.dynamic_partition ? PartitionAlgorithm::kDynamic : PartitionAlgorithm::kBinarySearch;
    plan_.algorithm = static_cast<PartitionAlgorithm>(
        fields.choice("algorithm", static_cast<std::size_t>(plan_.algorithm), kAlgorithms));
    if (fields.has("parts")) {
      if (fields.has("method")) fields.fail(fields.path_of("parts"), "contradicts method: give one of them");
      const auto parts = fields.integers("parts", 0, static_cast<std::int64_t>(plan_.layers.size()));
      plan_.parts.emplace();
      for (const std::int64_t part : parts) plan_.parts->push_back(static_cast<std::size_t>(part));
      const std::size_t stages = static_cast<std::size_t>(plan_.topology.pipe);
      if (!error_ &&
          (!std::ranges::is_sorted(parts) || parts.size() < 2 || (parts.size() - 1) % stages != 0 ||
           parts.front() != 0 || plan_.parts->back() != plan_.layers.size()))
        fields.fail(
            fields.path_of("parts"),
            fmt::format("must rise from 0 to the number of layers, {}, with one entry more than there "
                        "are stages",
                        plan_.layers.size()));
    }
    fields.end();
  }

  Stepper default_stepper(std::int64_t zero_stage) const {
    switch (plan_.framework) {
      case Framework::kDeepSpeed:
        if (zero_stage == 3) return Stepper::kZero3;
        // With a ZeRO stage BF16_Optimizer is taken only where gradients are added up in another type: an explicit stepper.
        if (zero_stage > 0) return Stepper::kZero;
        if (plan_.datatype == "bf16") return Stepper::kBf16;
        return plan_.datatype == "f16" ? Stepper::kFused : Stepper::kEngine;
      case Framework::kMegatron:
        return Stepper::kMegatron;
      case Framework::kTorch:
        return Stepper::kDdp;
    }
    return Stepper::kEngine;
  }

  void read_optimizer(Fields& root, Fields fields) {
    OptimizerPlan& optimizer = plan_.optimizer;
    Fields zero = root.object("zero");
    const std::int64_t stage = zero.integer("stage", 0, 0, 3);
    optimizer.reduce_bucket =
        static_cast<std::uint64_t>(zero.integer("reduce_bucket_size", 500'000'000, 1, kMaxSize));
    optimizer.allgather_bucket =
        static_cast<std::uint64_t>(zero.integer("allgather_bucket_size", 500'000'000, 1, kMaxSize));
    optimizer.reduction = static_cast<GradientReduction>(zero.choice("reduction", 0, kReductions));
    optimizer.part_alignment = static_cast<std::uint64_t>(zero.integer("part_alignment", 2, 1, 1 << 20));
    read_second_copies(zero, stage);
    zero.end();
    if (plan_.framework != Framework::kDeepSpeed && root.has("zero"))
      root.fail("$.zero", "only DeepSpeed plans have a ZeRO stage");
    if (stage > 1 && plan_.topology.pipe > 1)
      root.fail("$.zero.stage",
                "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism");  // as the framework says

    const auto rule = plan_.framework == Framework::kTorch ? GroupRule::kSingle : GroupRule::kMegatron;
    optimizer.rule =
        static_cast<GroupRule>(fields.choice("groups", static_cast<std::size_t>(rule), kGroupRules));
    optimizer.stepper = static_cast<Stepper>(
        fields.choice("stepper", static_cast<std::size_t>(default_stepper(stage)), kSteppers));
    check_stepper(fields, stage);
    const bool loops = optimizer.stepper == Stepper::kZero || optimizer.stepper == Stepper::kUnfused;
    optimizer.norm = static_cast<NormReduction>(fields.choice("norm", loops ? 0 : 1, kNorms));
    optimizer.norm_datatype = kDatatypes[fields.choice("norm_datatype", 2, kDatatypes)];
    if (fields.has("gradient_datatype"))
      optimizer.gradient_datatype = kDatatypes[fields.choice("gradient_datatype", 2, kDatatypes)];
    if (optimizer.reduction != GradientReduction::kBuckets && optimizer.stepper != Stepper::kZero)
      root.fail("$.zero.reduction", "flat buffers are those of the stepper zero");
    if (fields.has("no_decay_modules")) optimizer.no_decay_modules = fields.texts("no_decay_modules");
    optimizer.drop_empty = fields.boolean("drop_empty", plan_.framework != Framework::kMegatron);
    optimizer.clip_grad = fields.number("clip_grad", 1);
    if (optimizer.clip_grad < 0) fields.fail(fields.path_of("clip_grad"), "must not be negative");
    optimizer.loss_scale = fields.boolean("loss_scale", plan_.datatype == "f16");
    if (fields.has("bucket_size"))
      optimizer.bucket_size = static_cast<std::uint64_t>(fields.integer("bucket_size", 1, 1, kMaxSize));
    optimizer.overlap_grad_reduce = fields.boolean("overlap_grad_reduce", true);
    optimizer.chained = fields.boolean("chained", false);
    optimizer.per_token_loss = fields.boolean("per_token_loss", false);
    optimizer.bucket_cap_mb = fields.integer("bucket_cap_mb", 25, 1, 1 << 20);
    optimizer.cap_of_first_bucket = fields.has("bucket_cap_mb") && torch_caps_first_bucket(plan_.version);
    optimizer.find_unused = fields.boolean("find_unused", false);
    optimizer.static_graph = fields.boolean("static_graph", false);
    optimizer.reshard_after_forward = fields.boolean("reshard_after_forward", true);
    fields.end();
  }

  /// DeepSpeed's names. What would partition otherwise than it says here is refused, not passed over.
  void read_second_copies(Fields& zero, std::int64_t stage) {
    constexpr std::string_view kHpz = "zero_hpz_partition_size";
    const Topology& topology = plan_.topology;
    plan_.optimizer.hpz = std::clamp<std::int64_t>(zero.integer(kHpz, 1, 0, kMaxPlanRanks), 1, topology.data);
    if (plan_.optimizer.hpz > 1 && stage != 3) zero.fail(zero.path_of(kHpz), "needs $.zero.stage 3");
    if (plan_.optimizer.hpz > 1 && topology.tensor > 1)
      zero.fail(zero.path_of(kHpz), "its groups are consecutive ranks, which with $.topology.tensor hold parts of other parameters");
    if (topology.data % plan_.optimizer.hpz != 0)
      zero.fail(zero.path_of(kHpz), fmt::format("DeepSpeed refuses this: {} ranks are not divisible by {}", topology.data,
                                                plan_.optimizer.hpz));
    if (zero.integer("mics_shard_size", -1, -1, kMaxPlanRanks) > 0)
      zero.fail(zero.path_of("mics_shard_size"),
                "MiCS is not expanded: which of its calls are on which groups differs between DeepSpeed's releases; "
                "`lockstep plan groups --framework deepspeed` prints its groups");
  }

  void check_stepper(Fields& fields, std::int64_t zero_stage) {
    const Stepper stepper = plan_.optimizer.stepper;
    const auto owner = stepper <= Stepper::kEngine                ? Framework::kDeepSpeed
                       : stepper <= Stepper::kMegatronDistributed ? Framework::kMegatron
                                                                  : Framework::kTorch;
    const std::string_view name = kSteppers[static_cast<std::size_t>(stepper)];
    if (owner != plan_.framework)
      return fields.fail(fields.path_of("stepper"),
                         fmt::format("{} is none of {}'s", name, framework_name(plan_.framework)));
    const bool zero_stepper = stepper == Stepper::kZero || stepper == Stepper::kZero3;
    if (plan_.framework == Framework::kDeepSpeed && zero_stage == 0 && zero_stepper)
      fields.fail(fields.path_of("stepper"), fmt::format("{} needs $.zero.stage", name));
    if (zero_stage > 0 && !zero_stepper && (stepper != Stepper::kBf16 || zero_stage > 1))
      fields.fail(fields.path_of("stepper"),
                  fmt::format("{} contradicts $.zero.stage, which is {}", name, zero_stage));
  }

  void read_schedule(Fields fields) {
    SchedulePlan& schedule = plan_.schedule;
    schedule.name = fields.text("name", plan_.topology.pipe > 1 ? "1f1b" : "none");
    schedule.micro_batches = fields.integer("micro_batches", 1, 1, kMaxMicroBatches);
    schedule.chunks = fields.integer("virtual_stages", 1, 1, 1024);
    schedule.new_version = fields.boolean("new_version", behaviour_.new_schedule);
    schedule.batch_p2p = fields.boolean("batch_p2p_comm", true);
    schedule.overlap_p2p = fields.boolean("overlap_p2p_comm", false);
    schedule.warmup_flush = fields.boolean("overlap_p2p_comm_warmup_flush", false);
    schedule.variable_shapes = fields.boolean("variable_seq_lengths", false);
    schedule.group_sizes = fields.integers("microbatch_group_size_per_vp_stage", 1, kMaxMicroBatches);
    if (fields.has("loss")) {
      Fields loss = fields.object("loss");
      schedule.loss = read_shape(loss);
      if (schedule.loss.datatype.empty()) schedule.loss.datatype = "f32";
      loss.end();
    }
    schedule.input_args_stages = fields.integers(
        "stages_with_input_args", 0, plan_.topology.pipe * schedule.chunks - 1);
    if (plan_.framework != Framework::kTorch && !schedule.input_args_stages.empty())
      fields.fail(fields.path_of("stages_with_input_args"), "only torch's stages have them");
    fields.end();
    if (!schedule.group_sizes.empty() && schedule.group_sizes.size() != 1 &&
        static_cast<std::int64_t>(schedule.group_sizes.size()) != plan_.topology.pipe)
      fields.fail(fields.path_of("microbatch_group_size_per_vp_stage"),
                  "must have one entry, or one for each stage");
    // Calls of one rank: the work of expansion.
    constexpr std::int64_t kMostCalls = 40'000'000;
    // Steps of one pipeline, whose order torch works out step by step.
    const std::int64_t most_steps = plan_.framework == Framework::kTorch ? 1 << 18 : 1 << 21;
    const std::int64_t steps = plan_.topology.pipe * schedule.micro_batches * schedule.chunks;
    if (steps > most_steps)
      fields.fail(fields.path_of("micro_batches"),
                  fmt::format("{} micro-batches in {} stages of {} chunks are {} steps; at most {} are expanded",
                              schedule.micro_batches, plan_.topology.pipe, schedule.chunks, steps, most_steps));
    const std::int64_t ranks =
        plan_.topology.pipe * plan_.topology.data * plan_.topology.tensor * plan_.topology.context;
    // Where parameters are gathered for each micro-batch, each layer makes calls of its own.
    const bool gathers = plan_.optimizer.stepper == Stepper::kFsdp2 || plan_.optimizer.stepper == Stepper::kZero3;
    constexpr std::int64_t kMostGathered = 4'000'000;
    if (gathers && schedule.micro_batches * std::ssize(plan_.layers) > kMostGathered)
      fields.fail(fields.path_of("micro_batches"),
                  fmt::format("{} micro-batches of {} layers, whose parameters are gathered for each, are more than are expanded",
                              schedule.micro_batches, plan_.layers.size()));
    // Of what a stage hands on each tensor is a message.
    std::size_t tensors = 1;
    for (const Layer& layer : plan_.layers)
      if (layer.outputs) tensors = std::max(tensors, layer.outputs->size());
    if (steps * static_cast<std::int64_t>(tensors) > kMostCalls)
      fields.fail(fields.path_of("micro_batches"),
                  fmt::format("{} micro-batches in {} stages of {} chunks with {} tensors between them are more than are expanded",
                              schedule.micro_batches, plan_.topology.pipe, schedule.chunks, tensors));
    if (ranks * schedule.micro_batches * schedule.chunks > kMostCalls)
      fields.fail(fields.path_of("micro_batches"),
                  fmt::format("{} micro-batches on {} ranks are more than are expanded",
                              schedule.micro_batches, ranks));
  }

  void read_overrides(Fields& root) {
    const auto overrides = root.elements("overrides", 1000);
    for (std::size_t i = 0; i < overrides.size() && !error_; ++i) {
      Fields fields(overrides[i], root.path_of("overrides", i), error_);
      Override& entry = plan_.overrides.emplace_back();
      Fields where = fields.object("where");
      for (const std::string& axis : where.keys()) {
        static constexpr std::array<std::string_view, 4> kAxes = {"pipe", "data", "tensor", "rank"};
        if (std::ranges::find(kAxes, axis) == kAxes.end())
          where.fail(where.path_of(axis), "no such axis; pipe, data, tensor or rank");
        entry.where[axis] = where.integer(axis, 0, 0, kMaxPlanRanks - 1);
      }
      if (entry.where.empty()) fields.fail(fields.path_of("where"), "must name at least one axis");
      Fields set = fields.object("set");
      if (set.has("clip_grad")) entry.clip_grad = set.number("clip_grad", 0);
      if (set.has("find_unused")) entry.find_unused = set.boolean("find_unused", false);
      if (set.has("num_tokens_source")) {
        entry.num_tokens_source = set.integer("num_tokens_source", 0, 0, plan_.topology.pipe - 1);
        if (!plan_.optimizer.per_token_loss)
          set.fail(set.path_of("num_tokens_source"), "needs $.optimizer.per_token_loss");
      }
      if (set.has("drop_empty")) entry.drop_empty = set.boolean("drop_empty", true);
      const auto last = static_cast<std::int64_t>(plan_.layers.size()) - 1;
      entry.unused_layers = set.integers("unused_layers", 0, last);
      entry.sparse_layers = set.integers("sparse_layers", 0, last);
      set.end();
      fields.end();
    }
  }

  /// Layers with one tie key must share weights of one shape.
  void check_ties() {
    std::map<std::string, const Layer*> first;
    for (std::size_t i = 0; i < plan_.layers.size(); ++i) {
      const Layer& layer = plan_.layers[i];
      if (layer.tied.empty()) continue;
      const auto [entry, is_new] = first.emplace(layer.tied, &layer);
      if (is_new) continue;
      const auto shapes = [](const Layer& of) {
        std::vector<std::vector<std::int64_t>> list;
        for (const std::string& name : of.tied_weights)
          list.push_back(std::ranges::find(of.parameters, name, &Parameter::name)->shape.sizes);
        return list;
      };
      if (shapes(*entry->second) == shapes(layer)) continue;
      error_ = Error{
          ErrorCode::kMalformed,
          fmt::format("$.layers: '{}' and '{}' are tied by '{}' but share weights of other shapes or numbers",
                      display_name(*entry->second), display_name(layer), layer.tied)};
      return;
    }
  }

  const Json& file_;
  std::optional<Error> error_{};
  Plan plan_{};
  DeepSpeedBehaviour behaviour_{};
};

}  // namespace

std::string_view framework_name(Framework framework) {
  return kFrameworks[static_cast<std::size_t>(framework)];
}

std::uint64_t TensorShape::elements() const {
  std::uint64_t product = 1;
  for (const std::int64_t size : sizes) product *= static_cast<std::uint64_t>(size);
  return product;
}

std::string display_name(const Layer& layer) {
  if (!layer.name.empty()) return layer.name;
  return layer.class_name.empty() ? "layer without a name" : layer.class_name;
}

Result<Plan> read_plan(std::string_view text, std::string_view source) {
  const auto at_source = [source](Error error) {
    error.message = fmt::format("{}: {}", source, error.message);
    return error;
  };
  if (text.size() > kMaxPlanBytes)
    return at_source({ErrorCode::kUnsupported, fmt::format("larger than {} bytes", kMaxPlanBytes)});
  std::string problem;
  Json file;
  try {
    // Objects and arrays may not nest without end: a plan is five deep.
    constexpr int kMostNested = 16;
    file = Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kMostNested) throw std::length_error("nested more than 16 deep");
      return true;
    });
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (!problem.empty())
    return at_source({ErrorCode::kMalformed, fmt::format("no JSON that can be read: {}", problem)});
  auto plan = PlanReader(file).read();
  if (!plan) return at_source(plan.error());
  return plan;
}

}  // namespace lockstep::plan
