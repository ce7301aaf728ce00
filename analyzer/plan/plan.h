// A plan: what a training run is going to be, before it runs (schemas/plan.schema.json). Plain data as the
// file says it; nothing here is worked out yet.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/partition.h"

namespace lockstep::plan {

enum class Framework : std::uint8_t { kDeepSpeed, kMegatron, kTorch };
std::string_view framework_name(Framework framework);

struct TensorShape {
  std::vector<std::int64_t> sizes{};
  std::string datatype{};  ///< "f16"; empty: that of the precision
  std::uint64_t elements() const;
};

struct Parameter {
  std::string name{};    ///< within its layer: "mlp.dense.bias"
  std::string module{};  ///< class that owns it, where it is not the layer's: "LayerNorm"
  TensorShape shape{};
  bool expert = false;  ///< of an expert: reduced over expert-data groups
  bool frozen = false;  ///< takes no gradient anywhere
  bool unused = false;  ///< trained, but takes no gradient where this layer stands
  bool sparse = false;  ///< its gradient is sparse
};

struct Layer {
  std::string name{};                       ///< what a reader calls it; empty: its class
  std::string class_name{};                 ///< class or function; empty: an object without a name
  std::string tied{};                       ///< key that layers sharing weights have in common
  std::vector<std::string> tied_weights{};  ///< names of the parameters that are shared
  std::vector<Parameter> parameters{};
  std::optional<std::vector<TensorShape>> outputs{};  ///< what it hands on; absent: as the layer before
  bool experts = false;                               ///< a mixture of experts
  std::vector<std::int64_t> skips_to{};               ///< later layers that take its output, too
};

/// Degrees of parallelism. Not every framework has all of them.
struct Topology {
  std::int64_t pipe = 1;
  std::int64_t data = 1;  ///< replicas of a stage, sharded ones included
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 0;  ///< 0: as `tensor`
  std::int64_t replicate = 1;      ///< of `data`: HSDP replicas, torch
  std::string order{};             ///< Megatron's rank order; empty: its default
  std::int64_t optimizer_instances = 1;
};

enum class GroupRule : std::uint8_t {
  kSingle,          ///< all parameters in one group
  kMegatron,        ///< decay and no decay: biases and all of LayerNorm
  kOneDimensional,  ///< decay and no decay: biases and whatever has one dimension
  kThreeWay,        ///< first half, second half of the layers, no decay
};

/// What steps: which code reduces norms and looks for overflow.
enum class Stepper : std::uint8_t {
  kZero,  ///< DeepSpeed ZeRO-1 and 2
  kZero3,
  kFused,     ///< DeepSpeed FP16_Optimizer
  kUnfused,   ///< DeepSpeed FP16_UnfusedOptimizer
  kBf16,      ///< DeepSpeed BF16_Optimizer
  kEngine,    ///< DeepSpeed without any of these: fp32
  kMegatron,  ///< mixed precision or fp32
  kMegatronDistributed,
  kDdp,
  kFsdp2,
};

enum class NormReduction : std::uint8_t {
  kPerGroup,  ///< one reduction for each optimizer group
  kOnce,
  kVector,  ///< one reduction with an element for each optimizer group
};

/// How ZeRO's gradients meet: in buckets, or each optimizer group as one flat and padded buffer.
enum class GradientReduction : std::uint8_t { kBuckets, kFlatAllReduce, kFlatReduceScatter };

struct OptimizerPlan {
  GroupRule rule = GroupRule::kSingle;
  std::vector<std::string> no_decay_modules{
      "LayerNorm"};        ///< parts of class names whose parameters do not decay
  bool drop_empty = true;  ///< groups without parameters are left out on each rank for itself
  Stepper stepper = Stepper::kEngine;
  NormReduction norm = NormReduction::kOnce;
  std::string norm_datatype = "f32";
  std::string gradient_datatype{};  ///< in which gradients are added up; empty: as the stepper does
  GradientReduction reduction = GradientReduction::kBuckets;
  std::int64_t hpz = 1;  ///< ranks that share a second copy of ZeRO-3's parameters; 1: there is none
  std::uint64_t part_alignment = 2;  ///< elements that a replica's part of a ZeRO group is padded to
  double clip_grad = 1;
  bool loss_scale = false;                       ///< overflow is looked for, and a step may be skipped
  std::uint64_t reduce_bucket = 500'000'000;     ///< elements
  std::uint64_t allgather_bucket = 500'000'000;  ///< elements
  std::optional<std::uint64_t> bucket_size{};    ///< Megatron: elements; absent: the framework's rule
  bool overlap_grad_reduce = true;
  bool chained = false;  ///< Megatron: experts are stepped by an optimizer of their own in the order in which
                         ///< they are met
  bool per_token_loss = false;
  std::int64_t bucket_cap_mb = 25;
  bool cap_of_first_bucket = false;  ///< the first bucket is no smaller than the others
  bool find_unused = false;
  bool static_graph = false;
  bool reshard_after_forward = true;
};

struct SchedulePlan {
  std::vector<std::int64_t> input_args_stages{};  ///< torch: stages that were told the shapes of their input
  std::string name = "1f1b";  ///< 1f1b, interleaved, none, inference, or one of torch's
  std::int64_t micro_batches = 1;
  std::int64_t chunks = 1;  ///< virtual stages of a rank
  bool new_version = true;  ///< DeepSpeed's order of messages since 2023
  bool batch_p2p = true;
  bool overlap_p2p = false;
  bool warmup_flush = false;
  bool variable_shapes = false;
  /// Shapes are copied away before they are received, as NCCL does with messages so small. Not in files: gate asks what
  /// would be if they were.
  bool shapes_are_buffered = false;
  TensorShape loss{{2}, "f32"};  ///< what the last stage tells the others at the end; DeepSpeed
  std::vector<std::int64_t>
      group_sizes{};  ///< microbatch_group_size_per_vp_stage; one entry, or one for each stage
};

/// Ranks whose settings differ from the others'.
struct Override {
  std::map<std::string, std::int64_t> where{};  ///< axis -> index: {"pipe": 1}
  std::optional<double> clip_grad{};
  std::optional<bool> find_unused{};
  std::optional<bool> drop_empty{};
  std::vector<std::int64_t> unused_layers{};  ///< layers that take no gradient there
  std::vector<std::int64_t> sparse_layers{};
  std::optional<std::int64_t> num_tokens_source{};  ///< stage from which the number of tokens is broadcast
};

struct Plan {
  std::string name{};
  Framework framework = Framework::kDeepSpeed;
  std::string version{};
  Topology topology{};
  std::vector<Layer> layers{};
  std::string partition_method = "parameters";
  std::optional<Parts> parts{};  ///< stated outright, instead of a method
  PartitionAlgorithm algorithm = PartitionAlgorithm::kDynamic;
  std::string datatype = "f32";  ///< of parameters, activations and gradients
  OptimizerPlan optimizer{};
  SchedulePlan schedule{};
  std::vector<Override> overrides{};
};

/// What a reader calls a layer: its name, else its class.
std::string display_name(const Layer& layer);

}  // namespace lockstep::plan
