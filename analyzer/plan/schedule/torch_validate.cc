#include "plan/schedule/torch_validate.h"

#include <fmt/format.h>

#include <array>
#include <unordered_set>

namespace lockstep::plan {
namespace {

using enum TorchAct;

/// Micro-batches that a stage has done, by what it did. Sets: an action that stands twice counts once,
/// upstream too.
struct StageActions {
  std::unordered_set<std::int32_t> forward{}, full{}, input{}, weight{};
};

}  // namespace

std::optional<std::string> torch_validation_error(const TorchOrder& order, std::int32_t stages,
                                                  std::int32_t micro_batches,
                                                  std::vector<std::int32_t>& stage_ranks) {
  std::vector<StageActions> done(static_cast<std::size_t>(stages));
  stage_ranks.assign(static_cast<std::size_t>(stages), -1);
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    for (std::size_t step = 0; step < order[rank].size(); ++step) {
      const TorchAction& action = order[rank][step];
      for (std::size_t l = 0; l < action.leaf_count(); ++l) {
        const TorchLeaf& leaf = action.leaf(l);
        const auto at = fmt::format("AssertionError: Rank {}, step {}:", rank, step);
        if (leaf.stage >= stages) return fmt::format("KeyError: {}", leaf.stage);
        StageActions& stage = done[static_cast<std::size_t>(leaf.stage)];
        const std::int32_t m = leaf.micro_batch;
        const auto too_early = [&](std::string_view what, std::string_view before) {
          return fmt::format("{} Running {} for stage {}, microbatch {} without first running {}", at, what,
                             leaf.stage, m, before);
        };
        if (leaf.act == kForward) {
          stage.forward.insert(m);
        } else if (leaf.act == kBackward) {
          if (!stage.forward.contains(m)) return too_early("Full Backward", "Forward");
          stage.full.insert(m);
        } else if (leaf.act == kBackwardInput) {
          if (!stage.forward.contains(m)) return too_early("Backward Input", "Forward");
          stage.input.insert(m);
        } else if (leaf.act == kBackwardWeight) {
          if (!stage.input.contains(m)) return too_early("Backward Weight", "Backward Input");
          stage.weight.insert(m);
        }
        std::int32_t& owner = stage_ranks[static_cast<std::size_t>(leaf.stage)];
        if (owner == -1) owner = static_cast<std::int32_t>(rank);
        if (owner != static_cast<std::int32_t>(rank)) {
          return fmt::format("{} Stage {} is assigned to both rank {} and rank {}", at, leaf.stage, rank,
                             owner);
        }
      }
    }
  }
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    for (const TorchAction& action : order[rank]) {
      for (std::size_t l = 0; l < action.leaf_count(); ++l) {
        const TorchLeaf& leaf = action.leaf(l);
        // Upstream only counts; what it would do then is an index error at run time.
        if (leaf.micro_batch >= micro_batches) {
          return fmt::format("rank {}: {} names a micro-batch, but there are {}", rank,
                             torch_action_text(action), micro_batches);
        }
      }
    }
  }
  for (std::int32_t s = 0; s < stages; ++s) {
    const StageActions& stage = done[static_cast<std::size_t>(s)];
    const auto expected = static_cast<std::size_t>(micro_batches);
    if (stage.forward.size() != expected) {
      return fmt::format(
          "AssertionError: Got {} _ComputationType.FORWARD microbatches for stage {}, expected {}",
          stage.forward.size(), s, expected);
    }
    if (stage.input.size() != stage.weight.size()) {
      return fmt::format(
          "AssertionError: Invalid backward microbatches for stage {}: I and W must have equal counts,       "
          "      but got I={}, "
          "W={}",
          s, stage.input.size(), stage.weight.size());
    }
    if (stage.full.size() + stage.input.size() != expected) {
      return fmt::format(
          "AssertionError: Invalid backward microbatches for stage {}: expected {} total backwards,          "
          "   but got B={}, "
          "I={}, W={}",
          s, expected, stage.full.size(), stage.input.size(), stage.weight.size());
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::plan
