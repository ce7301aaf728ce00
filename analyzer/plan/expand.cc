// From a plan to the programs of all ranks for one iteration.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "plan/alike.h"
#include "plan/expansion.h"
#include "plan/pipeline_calls.h"
#include "plan/plan_timeline.h"
#include "plan/rank_calls.h"
#include "plan/step.h"

namespace lockstep::plan {
namespace {

bool applies(const Override& entry, const Layout& layout, std::int32_t rank) {
  return std::ranges::all_of(entry.where, [&](const auto& axis_and_index) {
    const auto& [axis, index] = axis_and_index;
    const Axis which = axis == "pipe"     ? Axis::kStage
                       : axis == "data"   ? Axis::kData
                       : axis == "tensor" ? Axis::kTensor
                                          : Axis::kRank;
    return layout.coordinate(which, rank) == index;
  });
}

/// The settings of all ranks; most ranks share them.
struct SettingsTable {
  std::vector<RankSettings> different{};
  std::vector<std::int32_t> of_rank{};  ///< index into `different`

  const RankSettings& of(std::int32_t rank) const {
    return different[static_cast<std::size_t>(of_rank[static_cast<std::size_t>(rank)])];
  }
};

RankSettings settings_with(const Plan& plan, const std::vector<std::size_t>& overrides) {
  RankSettings settings = plain_settings(plan);
  for (const std::size_t index : overrides) {
    const Override& entry = plan.overrides[index];
    if (entry.clip_grad) settings.clip_grad = *entry.clip_grad;
    if (entry.find_unused) settings.find_unused = *entry.find_unused;
    if (entry.drop_empty) settings.drop_empty = *entry.drop_empty;
    settings.unused_layers.insert(settings.unused_layers.end(), entry.unused_layers.begin(),
                                  entry.unused_layers.end());
    if (entry.num_tokens_source) settings.num_tokens_source = entry.num_tokens_source;
    settings.sparse_layers.insert(settings.sparse_layers.end(), entry.sparse_layers.begin(),
                                  entry.sparse_layers.end());
  }
  return settings;
}

SettingsTable settings_of_all(const Plan& plan, const Layout& layout) {
  SettingsTable table;
  std::map<std::vector<std::size_t>, std::int32_t> numbers;
  std::vector<std::size_t> applied;
  for (std::int32_t rank = 0; rank < layout.world; ++rank) {
    applied.clear();
    for (std::size_t i = 0; i < plan.overrides.size(); ++i)
      if (applies(plan.overrides[i], layout, rank)) applied.push_back(i);
    const auto [entry, is_new] = numbers.emplace(applied, static_cast<std::int32_t>(numbers.size()));
    if (is_new) table.different.push_back(settings_with(plan, applied));
    table.of_rank.push_back(entry->second);
  }
  return table;
}

std::unique_ptr<StepProgram> make_step(const Plan& plan, Iteration iteration, RankCalls& calls) {
  switch (plan.framework) {
    case Framework::kDeepSpeed:
      return deepspeed_step(plan, iteration, calls);
    case Framework::kMegatron:
      return megatron_step(plan, iteration, calls);
    case Framework::kTorch:
      return torch_step(plan, iteration, calls);
  }
  return nullptr;
}

/// Stages by number and settings: most ranks share them.
class StageCache {
 public:
  StageCache(const Plan& plan, const Parts& parts) : plan_(plan), parts_(parts) {}

  const Stage& get(std::int64_t stage, const RankSettings& settings) {
    const auto found = std::ranges::find_if(
        entries_, [&](const auto& entry) { return entry->stage == stage && entry->settings == settings; });
    if (found != entries_.end()) return (*found)->value;
    entries_.push_back(
        std::make_unique<Entry>(Entry{stage, settings, make_stage(plan_, parts_, stage, settings)}));
    return entries_.back()->value;
  }

 private:
  struct Entry {
    std::int64_t stage = 0;
    RankSettings settings{};
    Stage value{};
  };
  const Plan& plan_;
  const Parts& parts_;
  std::vector<std::unique_ptr<Entry>> entries_{};
};

/// What all ranks have in common.
struct Frame {
  const Plan& plan;
  const Parts& parts;
  const Layout& layout;
  const SettingsTable& settings;
  std::span<const Iteration> iterations;
  std::span<const Timeline> timelines;  ///< of the iterations
  std::span<const std::int32_t> keys{};  ///< by rank: equal where programs are
};

/// Ranks of one stage, with one set of settings and sizes of groups: they have one program.
std::vector<std::int32_t> keys_of_all(const Frame& frame) {
  std::vector<std::int32_t> keys;
  const auto settings = static_cast<std::int32_t>(frame.settings.different.size());
  for (std::int32_t rank = 0; rank < frame.layout.world; ++rank)
    keys.push_back(frame.layout.coordinate(Axis::kStage, rank) * settings +
                   frame.settings.of_rank[static_cast<std::size_t>(rank)]);
  return program_keys(frame.layout, keys);
}

/// Ranks that others stand for have their values.
void spread(const AlikeRanks& alike, std::vector<Quantity>& quantities) {
  for (Quantity& quantity : quantities)
    for (std::size_t rank = 0; rank < alike.image.size(); ++rank)
      quantity.by_rank[rank] = quantity.by_rank[static_cast<std::size_t>(alike.image[rank])];
}

Error too_many_calls(const Plan& plan) {
  return {ErrorCode::kUnsupported,
          fmt::format("$.schedule.micro_batches: {} micro-batches of {} layers on {} stages make more than the {} calls that are "
                      "expanded",
                      plan.schedule.micro_batches, plan.layers.size(), plan.topology.pipe, RankCalls::kMostCalls)};
}

/// Everything but the layout. Nothing where ranks taken to be alike turn out not to be.
Result<std::optional<Expansion>> expand_ranks(const Frame& frame, std::optional<AlikeRanks> alike) {
  const Plan& plan = frame.plan;
  Expansion expansion;
  expansion.parts = frame.parts;
  JobBuilder builder;
  builder.set_library(Library::kTorch);
  builder.set_name(plan.name);
  RankCalls calls(builder, frame.layout, alike ? &*alike : nullptr);
  std::vector<std::pair<std::unique_ptr<PipelineCalls>, std::unique_ptr<StepProgram>>> iterations;
  for (std::size_t i = 0; i < frame.iterations.size(); ++i)
    iterations.emplace_back(std::make_unique<PipelineCalls>(plan, frame.parts, frame.timelines[i], calls),
                            make_step(plan, frame.iterations[i], calls));
  std::map<std::int32_t, std::int32_t> models;  // by key: the rank that was expanded
  StageCache stages(plan, frame.parts);
  std::vector<bool> listed(static_cast<std::size_t>(plan.topology.pipe), false);
  std::size_t ranks = 0;
  for (std::int32_t rank = 0; rank < frame.layout.world; ++rank) {
    if (calls.too_many()) return too_many_calls(plan);
    if (alike && alike->image_of(rank) != rank) continue;
    const auto [model, is_new] = models.try_emplace(frame.keys[static_cast<std::size_t>(rank)], rank);
    const std::int32_t stage_index = frame.layout.coordinate(Axis::kStage, rank);
    const RankSettings& settings = frame.settings.of(rank);
    const Stage& stage = stages.get(stage_index, settings);
    if (!listed[static_cast<std::size_t>(stage_index)]) expansion.stages.emplace(rank, stage);
    listed[static_cast<std::size_t>(stage_index)] = true;
    ++ranks;
    if (!is_new && !alike) {
      calls.begin_like(rank, model->second);
      continue;
    }
    calls.begin(rank);
    const RankState state{stage, settings, stage_index};
    for (auto& [pipeline, step] : iterations) {
      step->start(state);
      pipeline->run(state, *step);
      step->finish(state);
    }
  }
  if (calls.too_many()) return too_many_calls(plan);
  if (!calls.alike_holds()) return std::optional<Expansion>();
  for (const std::int32_t key : frame.keys) expansion.program_of.push_back(models.at(key));
  builder.set_ranks_expected(ranks);
  expansion.quantities = calls.take_quantities();
  expansion.controls = calls.take_controls();
  expansion.job = std::move(builder).build();
  if (alike) spread(*alike, expansion.quantities);
  expansion.alike = std::move(alike);
  return std::optional(std::move(expansion));
}

}  // namespace

std::string_view iteration_name(Iteration iteration) {
  switch (iteration) {
    case Iteration::kFirst:
      return "first";
    case Iteration::kSecond:
      return "second";
    case Iteration::kSteady:
      return "steady";
    case Iteration::kSkipped:
      return "skipped";
  }
  return "steady";
}

Result<Expansion> expand(const Plan& plan, Iteration iteration, Ranks ranks) {
  return expand(plan, std::span(&iteration, 1), ranks);
}

Result<Expansion> expand(const Plan& plan, std::span<const Iteration> iterations, Ranks ranks) {
  const auto parts = plan_parts(plan);
  if (!parts) return parts.error();
  auto layout = make_layout(plan, tied_stages(plan, *parts));
  if (!layout) return Error{layout.error().code, fmt::format("$.topology: {}", layout.error().message)};
  std::vector<Timeline> timelines;
  for (const Iteration iteration : iterations) {
    auto timeline = plan_timeline(plan, *parts, iteration);
    if (!timeline) return timeline.error();
    timelines.push_back(*std::move(timeline));
  }

  const SettingsTable settings = settings_of_all(plan, *layout);
  Frame frame{plan, *parts, *layout, settings, iterations, timelines};
  const std::vector<std::int32_t> keys = keys_of_all(frame);
  frame.keys = keys;
  std::optional<Expansion> expansion;
  if (ranks == Ranks::kAlikeOnce)
    if (auto alike = find_alike_ranks(*layout, keys)) {
      auto kept = expand_ranks(frame, std::move(alike));
      if (!kept) return kept.error();
      expansion = *std::move(kept);
    }
  if (!expansion) {
    auto all = expand_ranks(frame, std::nullopt);
    if (!all) return all.error();
    expansion = *std::move(all);
  }
  expansion->layout = *std::move(layout);
  return *std::move(expansion);
}

const std::vector<std::int32_t>& all_members(const Expansion& expansion, CommIndex comm) {
  const Communicator& communicator = expansion.job.communicator(comm);
  if (!expansion.alike || communicator.members.empty()) return communicator.members;
  const RankList* const group = expansion.layout.group(communicator.name, communicator.members.front());
  return group == nullptr ? communicator.members : *group;
}

std::uint64_t call_count(const Expansion& expansion) {
  if (!expansion.alike) return expansion.job.operation_count();
  std::uint64_t count = 0;
  for (const std::int32_t image : expansion.alike->image)
    count += expansion.job.program(expansion.job.program_of_rank(image)).operations.size();
  return count;
}

}  // namespace lockstep::plan
