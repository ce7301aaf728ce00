// initialize_model_parallel of Megatron (core/parallel_state.py at d98e8a64): which groups, in which order,
// and what it refuses.
#include "plan/megatron_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/megatron_ranks.h"

namespace lockstep::plan {
namespace {

/// Collects the calls; the first error stops the rest, as an exception would.
class Creation {
 public:
  explicit Creation(bool gloo) : gloo_(gloo) {}

  void add(std::string name, RankList ranks) { groups_.push_back({std::move(name), std::move(ranks)}); }
  void add_with_gloo(const std::string& name, const RankList& ranks) {
    add(name, ranks);
    if (gloo_) add(name + "_GLOO", ranks);
  }

  /// Calls `make` for each group along `token`.
  template <class Make>
  void for_each(const RankGenerator& generator, std::string_view token, Make make) {
    if (error_) return;
    const auto lists = generator.ranks(token);
    if (!lists) return fail(lists.error());
    for (const RankList& ranks : *lists) {
      make(ranks);
      if (error_) return;
    }
  }
  void add_each(const RankGenerator& generator, std::string_view token, const std::string& name) {
    for_each(generator, token, [&](const RankList& ranks) { add(name, ranks); });
  }

  /// Sub-groups of every level, the first level of neighbours.
  void add_hierarchy(const RankList& ranks, const std::vector<std::int64_t>& sizes, const std::string& name,
                     bool gloo) {
    std::int64_t inner = 1;
    for (std::size_t level = 0; level < sizes.size(); ++level) {
      const std::int64_t size = sizes[level];
      const std::int64_t block = inner * size;
      for (std::int64_t start = 0; start < std::ssize(ranks); start += block)
        for (std::int64_t i = 0; i < inner; ++i) {
          RankList members;
          for (std::int64_t step = 0; step < size; ++step)
            members.push_back(ranks[static_cast<std::size_t>(start + i + step * inner)]);
          add(fmt::format("HIERARCHICAL_{}_L{}", name, level), members);
          if (gloo) add(fmt::format("HIERARCHICAL_{}_GLOO_L{}", name, level), members);
        }
      inner = block;
    }
  }

  void fail(const Error& error) {
    if (!error_) error_ = error;
  }
  void without_gloo() { gloo_ = false; }
  bool gloo() const { return gloo_; }

  Result<std::vector<NewGroup>> result() && {
    if (error_) return *error_;
    return std::move(groups_);
  }

 private:
  std::vector<NewGroup> groups_{};
  std::optional<Error> error_{};
  bool gloo_ = false;
};

struct Sizes {
  std::int64_t data = 1;
  std::int64_t expert_data = 1;
  std::int64_t expert_tensor = 1;
};

Result<Sizes> derive_sizes(const MegatronLayout& layout) {
  if ((layout.gtp_remat > 1 || layout.expert_gtp_remat > 1) && layout.optimizer_instances > 1)
    return rejected("AssertionError",
                    "GTP_remat with num_distributed_optimizer_instances > 1 is not yet supported.");
  const std::int64_t model = layout.tensor * layout.pipeline * layout.context * layout.gtp_remat;
  if (layout.world % model != 0)
    return rejected("RuntimeError",
                    fmt::format("world_size ({}) is not divisible by {}", layout.world, model));
  if (layout.virtual_pipeline && layout.pipeline <= 1)
    return rejected("RuntimeError",
                    "pipeline-model-parallel size should be greater than 1 with interleaved schedule");
  Sizes sizes;
  sizes.data = layout.world / model;
  sizes.expert_tensor = layout.expert_tensor.value_or(layout.tensor);
  return sizes;
}

Result<RankGenerator> expert_generator(const MegatronLayout& layout, Sizes& sizes) {
  const std::int64_t model = sizes.expert_tensor * layout.expert * layout.pipeline * layout.expert_gtp_remat;
  if (layout.world % model != 0)
    return rejected(
        "RuntimeError",
        fmt::format("world_size ({}) is not divisible by expert_tensor_model_pipeline_parallel size ({})",
                    layout.world, model));
  sizes.expert_data = layout.world / model;
  return RankGenerator::make({{"tp", sizes.expert_tensor},
                              {"ep", layout.expert},
                              {"dp", sizes.expert_data},
                              {"pp", layout.pipeline},
                              {"cp", 1},
                              {"gtp_remat", layout.expert_gtp_remat}},
                             with_gtp_remat(layout.order, "ep"), layout.rank_offset);
}

Result<bool> check_same_pipelines(const MegatronLayout& layout, const Sizes& sizes,
                                  const RankGenerator& dense, const RankGenerator& expert) {
  if (!layout.order.ends_with("pp") && layout.pipeline != 1 && sizes.expert_data != sizes.data)
    return rejected(
        "AssertionError",
        "When not using pp-last rank ordering, the data parallel size of the attention and moe layers "
        "must be the same");
  const auto dense_pipes = dense.ranks("pp");
  if (!dense_pipes) return dense_pipes.error();
  const auto expert_pipes = expert.ranks("pp");
  if (!expert_pipes) return expert_pipes.error();
  if (*dense_pipes != *expert_pipes)
    return rejected(
        "AssertionError",
        fmt::format("Pipeline parallel groups are expected to be the same for Non-Expert and Expert "
                    "part,     but got {} and {}",
                    python_text(*dense_pipes), python_text(*expert_pipes)));
  if (sizes.data * layout.context % layout.optimizer_instances != 0)
    return rejected("AssertionError",
                    "Data parallel size should be divisible by partial DistOpt shard factor");
  return true;
}

void add_data_groups(Creation& create, const MegatronLayout& layout, const Sizes& sizes,
                     const RankGenerator& dense) {
  create.add_each(dense, "gtp_remat", "GTP_WEIGHT_REMAT_GROUP");
  if (layout.gtp_remat > 1) create.without_gloo();
  const std::int64_t part = sizes.data * layout.context / layout.optimizer_instances;
  create.for_each(dense, "dp-cp", [&](const RankList& ranks) {
    create.add_with_gloo("DATA_PARALLEL_GROUP_WITH_CP", ranks);
    if (layout.optimizer_instances == 1) return;
    for (auto from = ranks.begin(); from != ranks.end(); from += part)
      create.add_with_gloo("INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP", RankList(from, from + part));
  });
  if (layout.hybrid_context)
    create.for_each(dense, "dp-cp", [&](const RankList& ranks) {
      if (ranks.size() % 2 != 0)
        return create.fail(
            rejected("AssertionError", "Hybrid context parallel requires an even number of ranks"));
      for (std::size_t size = 2; size * 2 <= ranks.size(); size *= 2)
        for (std::size_t from = 0; from < ranks.size(); from += size) {
          const auto begin = ranks.begin() + static_cast<std::ptrdiff_t>(from);
          create.add(
              fmt::format("HYBRID_DP_CP_GROUP_{}", size),
              RankList(begin, begin + static_cast<std::ptrdiff_t>(std::min(size, ranks.size() - from))));
        }
    });
  create.for_each(dense, "dp",
                  [&](const RankList& ranks) { create.add_with_gloo("DATA_PARALLEL_GROUP", ranks); });
  if (layout.gtp_remat == 1) return;
  create.add_each(dense, "gtp_remat-dp", "DATA_PARALLEL_GROUP_WITH_GTP_REMAT");
  create.add_each(dense, "gtp_remat-dp-cp", "DATA_PARALLEL_GROUP_WITH_CP_WITH_GTP_REMAT");
}

void add_model_groups(Creation& create, const MegatronLayout& layout, const RankGenerator& dense) {
  create.for_each(dense, "cp", [&](const RankList& ranks) {
    create.add("CONTEXT_PARALLEL_GROUP", ranks);
    if (layout.hierarchical_context.empty()) return;
    std::int64_t product = 1;
    for (const std::int64_t size : layout.hierarchical_context)
      product = std::min(product * size, kMaxWorld + 1);
    if (product != layout.context) return create.fail(rejected("AssertionError", ""));
    create.add_hierarchy(ranks, layout.hierarchical_context, "CONTEXT_PARALLEL_GROUP", false);
  });
  create.add_each(dense, "tp-gtp_remat-pp", "MODEL_PARALLEL_GROUP");
  create.add_each(dense, "tp", "TENSOR_MODEL_PARALLEL_GROUP");
  create.for_each(dense, "pp", [&](const RankList& ranks) {
    create.add("PIPELINE_MODEL_PARALLEL_GROUP", ranks);
    create.add("EMBEDDING_GROUP", ranks.size() == 1 ? ranks : RankList{ranks.front(), ranks.back()});
    create.add("POSITION_EMBEDDING_GROUP", {ranks.front()});
  });
  create.add_each(dense, "tp-gtp_remat-dp-cp", "TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP");
  create.add_each(dense, "tp-gtp_remat-dp", "TENSOR_AND_DATA_PARALLEL_GROUP");
  create.add_each(dense, "tp-cp", "TENSOR_AND_CONTEXT_PARALLEL_GROUP");
}

void add_expert_groups(Creation& create, const MegatronLayout& layout, const Sizes& sizes,
                       const RankGenerator& expert) {
  create.add_each(expert, "gtp_remat", "EXPERT_GTP_WEIGHT_REMAT_GROUP");
  create.add_each(expert, "ep", "EXPERT_MODEL_PARALLEL_GROUP");
  create.add_each(expert, "tp", "EXPERT_TENSOR_PARALLEL_GROUP");
  create.add_each(expert, "tp-ep", "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP");
  create.add_each(expert, "tp-ep-pp", "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP");
  create.add_each(expert, "tp-ep-gtp_remat-pp", "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP_WITH_EGTP");
  if (sizes.expert_data % layout.optimizer_instances != 0)
    return create.fail(rejected(
        "AssertionError", "Expert data parallel size should be divisible by partial DistOpt shard factor"));
  const std::int64_t part = sizes.expert_data / layout.optimizer_instances;
  if (layout.expert_gtp_remat > 1) create.without_gloo();
  create.for_each(expert, "dp", [&](const RankList& ranks) {
    create.add_with_gloo("EXPERT_DATA_PARALLEL_GROUP", ranks);
    if (layout.optimizer_instances > 1)
      create.add_hierarchy(ranks, {part, layout.optimizer_instances}, "EXPERT_DATA_PARALLEL_GROUP",
                           create.gloo());
  });
  if (layout.expert_gtp_remat > 1)
    create.add_each(expert, "gtp_remat-dp", "EXPERT_DATA_PARALLEL_GROUP_WITH_GTP_REMAT");

  const std::string name = "INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP";
  const bool whole_world = layout.gtp_remat > 1 || layout.expert_gtp_remat > 1;
  RankList collected;
  std::int64_t model_groups = 0;
  create.for_each(expert, "tp-ep-pp", [&](const RankList& ranks) {
    collected.insert(collected.end(), ranks.begin(), ranks.end());
    if (whole_world || ++model_groups % part != 0) return;
    create.add(name, std::move(collected));
    collected.clear();
  });
  if (!whole_world) return;
  std::ranges::sort(collected);
  create.add(name, std::move(collected));
}

}  // namespace

Result<std::vector<NewGroup>> megatron_groups(const MegatronLayout& layout) {
  const std::vector<std::string> names{"world",     "tensor",           "pipeline",
                                       "context",   "expert",           "expert_tensor",
                                       "gtp_remat", "expert_gtp_remat", "optimizer_instances"};
  const std::vector<std::int64_t> sizes{
      layout.world,     layout.tensor,           layout.pipeline,
      layout.context,   layout.expert,           layout.expert_tensor.value_or(1),
      layout.gtp_remat, layout.expert_gtp_remat, layout.optimizer_instances};
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (const auto valid = checked_world(std::span(names).subspan(i, 1), std::span(sizes).subspan(i, 1));
        !valid)
      return valid.error();
  for (const std::int64_t size : layout.hierarchical_context)
    if (size < 1 || size > kMaxWorld)
      return Error{ErrorCode::kMalformed, "a size of hierarchical_context is out of range"};
  // The framework would say that they do not divide the world, in numbers that may not fit.
  for (const auto& product : {std::vector{layout.tensor, layout.pipeline, layout.context, layout.gtp_remat},
                              std::vector{layout.expert_tensor.value_or(layout.tensor), layout.expert,
                                          layout.pipeline, layout.expert_gtp_remat}})
    if (const auto valid = checked_world(std::vector<std::string>(product.size(), "a size"), product); !valid)
      return valid.error();
  if (layout.rank_offset < 0 || layout.rank_offset > kMaxWorld)
    return Error{ErrorCode::kMalformed, "rank_offset is out of range"};

  auto derived = derive_sizes(layout);
  if (!derived) return derived.error();
  const auto dense = RankGenerator::make({{"tp", layout.tensor},
                                          {"ep", 1},
                                          {"dp", derived->data},
                                          {"pp", layout.pipeline},
                                          {"cp", layout.context},
                                          {"gtp_remat", layout.gtp_remat}},
                                         with_gtp_remat(layout.order, "tp"), layout.rank_offset);
  if (!dense) return dense.error();
  const auto expert = expert_generator(layout, *derived);
  if (!expert) return expert.error();
  if (const auto same = check_same_pipelines(layout, *derived, *dense, *expert); !same) return same.error();

  Creation create(layout.gloo);
  add_data_groups(create, layout, *derived, *dense);
  add_model_groups(create, layout, *dense);
  add_expert_groups(create, layout, *derived, *expert);
  return std::move(create).result();
}

}  // namespace lockstep::plan
