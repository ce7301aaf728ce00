// From a plan to the programs of all ranks for one iteration.
#include <fmt/format.h>

#include <algorithm>

#include "plan/expansion.h"
#include "plan/pipeline_calls.h"
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

RankSettings settings_of(const Plan& plan, const Layout& layout, std::int32_t rank) {
  RankSettings settings = plain_settings(plan);
  for (const Override& entry : plan.overrides) {
    if (!applies(entry, layout, rank)) continue;
    if (entry.clip_grad) settings.clip_grad = *entry.clip_grad;
    if (entry.find_unused) settings.find_unused = *entry.find_unused;
    if (entry.drop_empty) settings.drop_empty = *entry.drop_empty;
    settings.unused_layers.insert(settings.unused_layers.end(), entry.unused_layers.begin(),
                                  entry.unused_layers.end());
    settings.sparse_layers.insert(settings.sparse_layers.end(), entry.sparse_layers.begin(),
                                  entry.sparse_layers.end());
  }
  return settings;
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

Result<Expansion> expand(const Plan& plan, Iteration iteration) {
  const auto parts = plan_parts(plan);
  if (!parts) return parts.error();
  auto layout = make_layout(plan, tied_stages(plan, *parts));
  if (!layout) return Error{layout.error().code, fmt::format("$.topology: {}", layout.error().message)};
  const auto timeline = plan_timeline(plan, iteration);
  if (!timeline) return timeline.error();

  Expansion expansion;
  expansion.parts = *parts;
  JobBuilder builder;
  builder.set_library(Library::kTorch);
  builder.set_name(plan.name);
  RankCalls calls(builder, *layout);
  PipelineCalls pipeline(plan, *parts, *timeline, calls);
  const auto step = make_step(plan, iteration, calls);
  StageCache stages(plan, *parts);
  std::vector<bool> listed(static_cast<std::size_t>(plan.topology.pipe), false);
  for (std::int32_t rank = 0; rank < layout->world; ++rank) {
    const std::int32_t stage_index = layout->coordinate(Axis::kStage, rank);
    const RankSettings settings = settings_of(plan, *layout, rank);
    const Stage& stage = stages.get(stage_index, settings);
    if (!listed[static_cast<std::size_t>(stage_index)]) expansion.stages.emplace(rank, stage);
    listed[static_cast<std::size_t>(stage_index)] = true;
    calls.begin(rank);
    const RankState state{stage, settings, stage_index};
    pipeline.run(state, *step);
    step->finish(state);
  }
  builder.set_ranks_expected(static_cast<std::size_t>(layout->world));
  expansion.quantities = calls.take_quantities();
  expansion.controls = calls.take_controls();
  expansion.layout = *std::move(layout);
  expansion.job = std::move(builder).build();
  return expansion;
}

}  // namespace lockstep::plan
