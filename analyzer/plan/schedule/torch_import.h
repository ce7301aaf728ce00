// A schedule CSV of torch.distributed.pipelining as a user has it, with or without messages: what upstream
// checks and what it does not, and a Timeline to replay.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/schedule/timeline.h"
#include "plan/schedule/torch_action.h"

namespace lockstep::plan {

/// Something that the runtime would stumble over, or that it would do twice or not at all.
struct TorchProblem {
  std::size_t rank = 0;               ///< row, from 0
  std::optional<std::size_t> cell{};  ///< from 0; nothing where it is about the row as a whole
  std::string message{};
  bool checked_upstream = false;  ///< torch's own validation refuses it too
};

struct TorchImport {
  TorchOrder order{};
  bool has_messages =
      false;  ///< SEND and RECV stand in it: it is executed as it is; otherwise it is lowered as torch does
  std::int32_t stages = 0;
  std::int32_t micro_batches = 0;
  std::vector<std::int32_t> stage_ranks{};  ///< -1: no row has the stage
  std::vector<TorchProblem> problems{};     ///< by rank and cell; at most kMaxTorchProblems of one rank
  std::optional<Timeline> timeline{};       ///< nothing where a problem keeps the order from being lowered
};

inline constexpr std::size_t kMaxTorchProblems = 20;

/// The error is of the text alone: a cell that is no action. Stages and micro-batches are those that the
/// cells name.
Result<TorchImport> import_torch_csv(std::string_view csv, std::string_view path, TorchLetters letters);

}  // namespace lockstep::plan
