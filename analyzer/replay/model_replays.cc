// See the header.
#include "replay/model_replays.h"

#include <algorithm>

namespace lockstep {

ModelReplays::ModelReplays(const Job& job, const MatchResult& match, std::span<const BlockingModel> models)
    : job_(job), match_(match), asks_strict_(std::ranges::find(models, BlockingModel::kBlocking) != models.end()) {}

const ReplayResult& ModelReplays::of(BlockingModel model, bool groups_as_written) {
  std::optional<ReplayResult>& result = made(model, groups_as_written);
  if (result) return *result;
  const bool is_laxer = model == BlockingModel::kLazy || model == BlockingModel::kEager;
  if (is_laxer && asks_strict_ && of(BlockingModel::kBlocking, groups_as_written).finished()) return result.emplace();
  return result.emplace(replay(job_, match_, {.model = model, .groups_as_written = groups_as_written}));
}

}  // namespace lockstep
