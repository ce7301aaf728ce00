// `lockstep plan buckets --framework megatron`: buffers of a stage with and without the distributed
// optimizer.
#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "cli/plan_buckets_of.h"

namespace lockstep {
namespace {

constexpr PlanParameter kParameters[] = {
    {"stage", ParameterKind::kText, "a stage in words: \"emb+4 layers\", \"4 layers+head\"; or"},
    {"numels", ParameterKind::kIntegers, "elements of each tensor, in order of registration"},
    {"shared_embedding", ParameterKind::kIntegers, "with --numels: tensors with a bucket of their own"},
    {"hidden", ParameterKind::kInteger, "with --stage: default 1024"},
    {"vocabulary", ParameterKind::kInteger, "with --stage: default 32000"},
    {"bucket_size", ParameterKind::kInteger, "elements; null: one bucket"},
    {"distributed_optimizer", ParameterKind::kBoolean, "default false"},
    {"dp", ParameterKind::kInteger, "data-parallel size, with the distributed optimizer"},
    {"pad_buckets_for_high_nccl_busbw", ParameterKind::kBoolean, "default false"},
};

constexpr std::int64_t kMostLayers = 10'000;

/// Layers of qkv, projection, two MLP matrices and two layer norms, in that order; a head comes with a final
/// norm.
Result<std::vector<plan::MegatronTensor>> tensors_of_stage(const std::string& stage, std::int64_t hidden,
                                                           std::int64_t vocabulary) {
  static const RE2 kStage(
      "(?i)^(?:[a-z]+ ?[0-9]* +)?(emb[a-z]*)? ?\\+? ?([0-9]+) layers?(?: ?\\+ ?(head))?$");
  std::string embedding;
  std::string head;
  std::int64_t layers = 0;
  if (!RE2::FullMatch(stage, kStage, &embedding, &layers, &head))
    return Error{
        ErrorCode::kMalformed,
        fmt::format("stage: '{}' is not understood; as in \"emb+4 layers\", \"4 layers+head\"", stage)};
  if (layers > kMostLayers || hidden < 1 || hidden > (1 << 20) || vocabulary < 1 || vocabulary > (1 << 28))
    return Error{ErrorCode::kMalformed, "stage, hidden or vocabulary is out of range"};
  const auto width = static_cast<std::uint64_t>(hidden);
  const std::uint64_t table = width * static_cast<std::uint64_t>(vocabulary);
  std::vector<plan::MegatronTensor> tensors;
  if (!embedding.empty()) tensors.push_back({table});
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (const std::uint64_t elements :
         {3 * width * width, width * width, 4 * width * width, 4 * width * width, width, width})
      tensors.push_back({elements});
  if (head.empty()) return tensors;
  tensors.push_back({width});
  tensors.push_back({table});
  return tensors;
}

Result<std::vector<plan::MegatronTensor>> tensors_from(const PlanArguments& arguments) {
  if (arguments.has("stage"))
    return tensors_of_stage(arguments.text("stage", ""), arguments.integer("hidden", 1024),
                            arguments.integer("vocabulary", 32000));
  const auto numels = element_counts(arguments, "numels");
  if (!numels) return numels.error();
  std::vector<plan::MegatronTensor> tensors;
  for (const std::uint64_t elements : *numels) tensors.push_back({elements});
  for (const std::int64_t shared : arguments.integers("shared_embedding")) {
    if (shared < 0 || shared >= std::ssize(tensors))
      return Error{ErrorCode::kMalformed, fmt::format("shared_embedding: there is no tensor {}", shared)};
    tensors[static_cast<std::size_t>(shared)].shared_embedding = true;
  }
  return tensors;
}

Result<PlanJson> buckets_json(const PlanArguments& arguments) {
  const auto tensors = tensors_from(arguments);
  if (!tensors) return tensors.error();
  plan::MegatronBucketOptions options;
  if (const auto size = arguments.integer("bucket_size")) {
    if (*size < 0) return Error{ErrorCode::kMalformed, "bucket_size must not be negative"};
    options.bucket_size = static_cast<std::uint64_t>(*size);
  }
  const std::int64_t dp = arguments.integer("dp", 1);
  if (dp < 1 || dp > (1 << 20)) return Error{ErrorCode::kMalformed, "dp is out of range"};
  options.data_parallel = static_cast<std::uint64_t>(dp);
  options.distributed_optimizer = arguments.boolean("distributed_optimizer", false);
  options.pad_for_high_busbw = arguments.boolean("pad_buckets_for_high_nccl_busbw", false);
  const auto buckets = megatron_buckets(*tensors, options);

  PlanJson out = arguments.values;
  out["bucket_size"] = options.bucket_size ? PlanJson(*options.bucket_size) : PlanJson(nullptr);
  out["distributed_optimizer"] = options.distributed_optimizer;
  out["n_buckets"] = buckets.size();
  PlanJson unpadded = PlanJson::array();
  PlanJson padded = PlanJson::array();
  PlanJson indices = PlanJson::array();
  for (const plan::MegatronBucket& bucket : buckets) {
    unpadded.push_back(bucket.unpadded);
    padded.push_back(bucket.end - bucket.begin);
    indices.push_back({bucket.begin, bucket.end});
  }
  out["bucket_numel_unpadded"] = unpadded;
  if (options.distributed_optimizer)
    out["bucket_numel_padded"] = padded;
  else
    out["bucket_indices"] = indices;
  return out;
}

}  // namespace

int plan_buckets_of_megatron(const Subcommand& subcommand, std::span<const std::string_view> args) {
  PlanArguments arguments;
  if (const auto done = parse_plan_arguments(subcommand, kParameters, args, arguments)) return *done;
  if (arguments.has("stage") == arguments.has("numels"))
    return usage_error(subcommand, "either --stage or --numels is needed");
  return print_plan_json(buckets_json(arguments));
}

}  // namespace lockstep
